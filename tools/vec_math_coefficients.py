#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Prints the polynomial coefficients of engine/kernels/vec_math-inl.h with their largest errors.
# Needs mpmath.
# Holds the formulas that are approximated, not how they are evaluated.

from mpmath import (cos, erfc, exp, frexp, log, lu_solve, matrix, mp, mpf, nint, nstr, pi, polyval,
                    sqrt, tanh)

mp.dps = 40


def to_float(x):
    """x rounded to the nearest f32."""
    mantissa, exponent = frexp(x)
    return nint(mantissa * 2**24) * mpf(2) ** (exponent - 24)


def remez(f, weight, low, high, degree, rounds=10, points=200):
    """Coefficients, lowest first, of the polynomial of least max |weight (f - p)|, and that."""
    low, high, count = mpf(low), mpf(high), degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle - half * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    grid = [middle - half * cos(pi * i / points) for i in range(points + 1)]
    samples = [(x, f(x), weight(x)) for x in grid]
    for _ in range(rounds):
        system, right = matrix(count, count), matrix(count, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = lu_solve(system, right)
        poly = [solution[j] for j in range(degree + 1)]
        peaks = []  # the largest error of each run of one sign
        for x, fx, wx in samples:
            error = wx * (fx - polyval(poly[::-1], x))
            if peaks and (error > 0) == (peaks[-1][1] > 0):
                if abs(error) > abs(peaks[-1][1]):
                    peaks[-1] = (x, error)
            else:
                peaks.append((x, error))
        worst = max(abs(error) for _, error in peaks)
        while len(peaks) > count:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        if len(peaks) < count or worst < abs(solution[degree + 1]) * mpf("1.001"):
            break
        nodes = [x for x, _ in peaks]
    return poly, worst


def show(name, poly, worst):
    print(f"{name}: largest error {nstr(worst, 3)}")
    print("  " + ", ".join(nstr(to_float(c), 10) + "f" for c in poly))


def exp_tail(r):
    return (exp(r) - 1 - r) / r**2 if abs(r) > mpf("1e-9") else mpf(1) / 2 + r / 6


def tanh_tail(u):  # u = x^2
    return (tanh(sqrt(u)) / sqrt(u) - 1) / u if u > mpf("1e-15") else -mpf(1) / 3 + 2 * u / 15


def mills(a):
    """Phi(-a) e^(a^2 / 2)."""
    return erfc(a / sqrt(mpf(2))) * exp(a * a / 2) / 2


def lucky_centre(low, high):
    """A point near the middle, with few bits, at which mills() is all but an f32 itself."""
    middle, step = nint((low + high) / 2 * 1024) / 1024, mpf(2) ** -18
    candidates = [middle + i * step for i in range(-1500, 1500) if 0 <= middle + i * step]

    def miss(x):
        y = mills(x)
        return abs(to_float(y) / y - 1)

    return min(candidates, key=miss)


def main():
    half = log(mpf(2)) / 2 * mpf("1.0001")
    show("exp", *remez(exp_tail, lambda r: (r * r + mpf("1e-30")) / exp(r), -half, half, 4))
    weight = lambda u: (u + mpf("1e-20")) / (1 + u * tanh_tail(u))
    show("tanh", *remez(tanh_tail, weight, 0, mpf("0.81"), 6))

    edges = [mpf(2) ** (i // 4) * (1 + mpf(i % 4) / 4) - 1 for i in range(16)] + [mpf("14.5")]
    rows, largest = [], 0
    for low, high in zip(edges, edges[1:]):
        centre = lucky_centre(low, high)
        poly, _ = remez(lambda u: mills(centre + u), lambda u: 1 / mills(centre + u), low - centre,
                        high - centre, 6, rounds=5, points=80)
        poly = [to_float(c) for c in poly]
        rows.append([centre] + poly)
        for i in range(101):
            x = low + (high - low) * i / 100
            largest = max(largest, abs(polyval(poly[::-1], x - centre) / mills(x) - 1))
    print(f"mills: largest error {nstr(largest, 3)}; centre, then powers 0 to 6")
    for k in range(8):
        print("  {" + ", ".join(nstr(row[k], 10) + "f" for row in rows) + "},")

    split = [("ln 2", log(mpf(2)), 16), ("2 sqrt(2 / pi)", 2 * sqrt(2 / pi), 12),
             ("0.044715 * 2 sqrt(2 / pi)", mpf("0.044715") * 2 * sqrt(2 / pi), 24)]
    for name, value, bits in split:
        mantissa, exponent = frexp(value)
        high = nint(mantissa * 2**bits) * mpf(2) ** (exponent - bits)
        print(f"{name} = {nstr(high, 12)}f + {nstr(to_float(value - high), 10)}f")
    print(f"log2(e) = {nstr(to_float(1 / log(mpf(2))), 10)}f")


if __name__ == "__main__":
    main()
