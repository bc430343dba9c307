#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Prints the polynomial coefficients of engine/kernels/vec_math-inl.h and the tables of
# vec_math_tables.h and activation_tables.h with their largest errors. Needs mpmath.
# Holds the formulas that are approximated, not how they are evaluated.

from struct import pack, unpack

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


def mills(a):
    """Phi(-a) e^(a^2 / 2)."""
    return erfc(a / sqrt(mpf(2))) * exp(a * a / 2) / 2


def lucky_centre(low, high, f):
    """A point near the middle, with few bits, at which f is all but an f32 itself."""
    middle, step = nint((low + high) / 2 * 1024) / 1024, mpf(2) ** -18
    candidates = [middle + i * step for i in range(-1500, 1500) if 0 <= middle + i * step]

    def miss(x):
        y = f(x)
        return abs(to_float(y) / y - 1)

    return min(candidates, key=miss)


# ---- tanh and GELU in 16 intervals, with small relative errors -----------------------------------
# In the first interval it is the polynomial plus a.


def octave_edges(first):
    """Four intervals an octave of 1 + a / (4 first)."""
    return [4 * first * (mpf(2) ** (i // 4) * (1 + mpf(i % 4) / 4) - 1) for i in range(17)]


def show_octaves(name, f, rows, edges):
    largest = (0, 0)
    for low, high, row in zip(edges, edges[1:], rows):
        for j in range(1, 201):
            a = low + (high - low) * j / 200
            start = a if low == 0 else 0
            error = abs((start + polyval(row[:0:-1], a - row[0])) / f(a) - 1)
            largest = max(largest, (error, a))
    print_table(name, largest, rows)


def print_table(name, largest, rows):
    print(f"{name}: largest error {nstr(largest[0], 3)} at {nstr(largest[1], 5)}; "
          f"centres, then powers 0 to {len(rows[0]) - 2}")
    for k in range(len(rows[0])):
        print("  {" + ", ".join(nstr(row[k], 10) + "f" for row in rows) + "},")


def show_tanh():
    limit = mpf("9.02")
    scale = to_float(mpf(30) / (limit * mpf("1.00001")))
    edges = octave_edges(mpf(1) / (2 * scale))
    edges[16] = limit = to_float(limit)
    # The first one is of tanh a - a = a^3 ...
    start, _ = remez(lambda u: (tanh(u) - u) / u**3, lambda u: u * u, mpf("1e-6"), edges[1], 2)
    rows = [[mpf(0)] * 4 + [to_float(c) for c in start]]
    for low, high in zip(edges[1:15], edges[2:16]):
        centre, miss = (low + high) / 2, 0
        for _ in range(3):  # the first coefficient is not tanh(centre), as the degree is odd
            centre = lucky_centre(low, high, lambda a: tanh(a) - miss)
            poly, _ = remez(lambda u: tanh(centre + u), lambda u: 1 / tanh(centre + u),
                            low - centre, high - centre, 5, 5, 80)
            miss = tanh(centre) - poly[0]
        rows.append([centre] + [to_float(c) for c in poly])
    rows.append([limit] + fit_tail(tanh, limit, edges[15], limit, mpf(1)))
    print(f"tanh: scale {nstr(scale, 10)}, limit {nstr(limit, 10)}, first edge {edges[1]}")
    show_octaves("tanh", tanh, rows, edges)


def show_gelu():
    edges = octave_edges(mpf(1) / 4)
    edges[16] = mpf("14.5")

    def f(a):
        return 2 * a * mills(a)

    # The first one is of f(a) - a = a^2 ...
    start, _ = remez(lambda u: (2 * mills(u) - 1) / u, lambda u: u / (2 * mills(u)), mpf("1e-6"),
                     edges[1], 4)
    rows = [[mpf(0)] * 3 + [to_float(c) for c in start]]
    for low, high in zip(edges[1:], edges[2:]):
        centre = lucky_centre(low, high, f)
        poly, _ = remez(lambda u: f(centre + u), lambda u: 1 / f(centre + u), low - centre,
                        high - centre, 6, 5, 80)
        rows.append([centre] + [to_float(c) for c in poly])
    show_octaves("gelu", f, rows, edges)


# ---- The tails behind the activations of a block ------------------------------------------------
# f(a) for a >= 0 in 16 intervals, a polynomial of degree 5 in a - centre each. The last one ends at
# its own centre, with f = 0 exactly there, and stands for all that lies beyond.


def phi_tail(a):
    return erfc(a / sqrt(mpf(2))) / 2


def sigmoid_tail(a):
    return 1 / (1 + exp(a))


def gelu_tanh_tail(a):
    return 1 / (1 + exp(2 * sqrt(2 / pi) * a * (1 + mpf("0.044715") * a * a)))


def fit_tail(f, centre, low, high, first=None):
    """Rounded coefficients of degree 5 around the centre; the first of them `first`, if given."""
    low, high = low - centre, high - centre
    if first is None:
        poly, _ = remez(lambda u: f(centre + u), lambda u: mpf(1), low, high, 5, 5, 80)
        return [to_float(c) for c in poly]
    # What `first` lacks at the centre fades out to the other end.
    miss, width = f(centre) - first, max(-low, high)

    def rest(u):
        u = u if u else mpf("1e-9") * (1 if high else -1)
        return (f(centre + u) - first - miss * (1 - abs(u) / width) ** 3) / u

    poly, _ = remez(rest, lambda u: abs(u) + mpf("1e-12"), low, high, 4, 5, 80)
    return [to_float(c) for c in [first] + poly]


def show_tail(name, f, edges, centres):
    """Prints centres and coefficients, and the largest a |error| in halves of an ulp of a."""
    rows, largest = [], (0, 0)
    for i, (low, high, centre) in enumerate(zip(edges, edges[1:], centres)):
        first = mpf(0) if i == 15 else mpf(1) / 2 if centre == 0 else None
        poly = fit_tail(f, centre, low, high, first)
        rows.append([centre] + poly)
        for j in range(1, 201):
            a = low + (high - low) * j / 200
            half_ulp = mpf(2) ** (frexp(a)[1] - 25)
            error = abs(polyval(poly[::-1], a - centre) - f(a))
            largest = max(largest, (error * a / half_ulp, a))
    print_table(name, largest, rows)


def show_even_tail(name, f, step):
    """Centres at multiples of a step near the given one at which f is all but an f32."""
    steps = [mpf(nint(step * 2**17) + i) / 2**17 for i in range(-1500, 1500)]
    step = min(steps, key=lambda h: max(abs(to_float(f(k * h)) - f(k * h)) for k in (1, 2, 3)))
    print(f"{name}: step {nstr(step, 12)}, inverse {nstr(to_float(1 / step), 10)}")
    edges = [mpf(0)] + [(k + mpf(1) / 2) * step for k in range(15)] + [15 * step]
    show_tail(name, f, edges, [k * step for k in range(16)])


def show_octave_tail(name, f, limit):
    """Four intervals an octave of 1 + a * scale, where the last is complete at the limit."""
    scale = to_float(15 / (limit * mpf("1.00001")))
    print(f"{name}: 2 scale {nstr(2 * scale, 10)}")
    edges = octave_edges(1 / (4 * scale))[:16] + [limit]
    centres = [lucky_centre(low, high, f) for low, high in zip(edges, edges[1:])]
    show_tail(name, f, edges, centres[:15] + [limit])


# ---- Exponentials -------------------------------------------------------------------------------


def show_exp_tail(name, limit, degree):
    show(name, *remez(exp_tail, lambda r: (r * r + mpf("1e-30")) / exp(r), -limit, limit, degree))


def show_slope(name, base):
    """(base^r - 1) / r for |r| <= log(2) / log(base) / 2."""
    limit = log(mpf(2)) / log(base) / 2 * mpf("1.0001")
    show(name, *remez(lambda r: (base**r - 1) / r if r else log(base),
                      lambda r: (abs(r) + mpf("1e-15")) / base**r, -limit, limit, 5))


def show_eighth_powers():
    powers = [mpf(2) ** (mpf(i) / 8) for i in range(8)]
    floats = [to_float(power) for power in powers]
    bits = [unpack("<I", pack("<f", float(x)))[0] for x in floats]
    lows = [to_float(power / x - 1) for power, x in zip(powers, floats)]
    print("eighth powers: the powers, what they lack, their bits less (127 << 23) and i << 20")
    print("  " + ", ".join(nstr(x, 10) + "f" for x in floats))
    print("  " + ", ".join(nstr(x, 10) + "f" for x in lows))
    print("  " + ", ".join(f"0x{b - (127 << 23) - (i << 20) & 0xffffffff:08x}"
                           for i, b in enumerate(bits)))


def main():
    show_exp_tail("exp tail", log(mpf(2)) / 2 * mpf("1.0001"), 4)
    eighth = log(mpf(2)) / 16 * mpf("1.0002")
    show_exp_tail("exp eighth tail", eighth, 2)
    show_exp_tail("softmax's exp", eighth, 1)
    show_eighth_powers()
    show_slope("slope of e", exp(mpf(1)))
    show_slope("slope of 2", mpf(2))

    show_tanh()
    show_gelu()

    show_even_tail("gelu tail", phi_tail, mpf("0.37"))
    show_even_tail("gelu_tanh tail", gelu_tanh_tail, mpf("0.35"))
    show_octave_tail("silu tail", sigmoid_tail, mpf(18))
    show_octave_tail("quick_gelu tail", lambda a: sigmoid_tail(mpf("1.702") * a), mpf("10.6"))

    k1 = 2 * sqrt(2 / pi) / log(mpf(2))
    split = [("ln 2", log(mpf(2)), 12), ("2 sqrt(2 / pi) / ln 2", k1, 22),
             ("0.044715 * 2 sqrt(2 / pi) / ln 2", mpf("0.044715") * k1, 24)]
    for name, value, bits in split:
        mantissa, exponent = frexp(value)
        high = nint(mantissa * 2**bits) * mpf(2) ** (exponent - bits)
        print(f"{name} = {nstr(high, 12)}f + {nstr(to_float(value - high), 10)}f")
    print(f"log2(e) = {nstr(to_float(1 / log(mpf(2))), 10)}f")


if __name__ == "__main__":
    main()
