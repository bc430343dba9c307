// SPDX-License-Identifier: Apache-2.0
//
// The table behind Gelu: M(a) = Phi(-a) e^(a^2 / 2), Phi the normal distribution function, for
// 0 <= a <= 14.5. Holds numbers only; vec_math-inl.h evaluates them.
//
// Interval i covers 2 a + 2 in [2^e (4 + m) / 4, 2^e (5 + m) / 4) with e = 1 + i / 4 and m = i % 4,
// so that i is the low four bits of the exponent joined with the two upper bits of the mantissa. In
// it M(a) = sum_k c[k] u^k with u = a - centre. Minimax by the Remez algorithm on the relative
// error, which stays below 7.5e-9 (an eighth of half an ulp) with the rounded coefficients below.
// Each centre is a point near the middle where M happens to be an f32 to 33 bits, so that rounding
// c[0] costs nothing (Gal's accurate tables). Made by tools/vec_math_coefficients.py.

#ifndef ENCORE_ENGINE_KERNELS_MILLS_TABLE_H_
#define ENCORE_ENGINE_KERNELS_MILLS_TABLE_H_

namespace encore::internal {

inline constexpr int kMillsIntervals = 16;
inline constexpr int kMillsDegree = 6;

// clang-format off
alignas(64) inline constexpr float kMillsTable[kMillsDegree + 2][kMillsIntervals] = {
    {  // the expansion points
        0.1251373291f, 0.3712120056f, 0.62292099f, 0.8767280579f,
        1.251708984f, 1.751243591f, 2.249580383f, 2.745510101f,
        3.499187469f, 4.498092651f, 5.499595642f, 6.498474121f,
        7.99949646f, 9.997585297f, 12.00356293f, 13.74890137f,
    },
    {  // the coefficients of u^0
        0.4537462294f, 0.3805784285f, 0.3237658441f, 0.2795044184f,
        0.2305716276f, 0.1851387024f, 0.1536742747f, 0.1309020817f,
        0.1063668802f, 0.0848364532f, 0.07034756988f, 0.06002916768f,
        0.04912554845f, 0.03951605409f, 0.03300930187f, 0.02886517718f,
    },
    {  // the coefficients of u^1
        -0.3421616852f, -0.2576670051f, -0.1972617358f, -0.1538929194f,
        -0.1103337109f, -0.07471931726f, -0.0532396473f, -0.03954929486f,
        -0.02674463019f, -0.01734005474f, -0.01205909159f, -0.008844288066f,
        -0.0059626312f, -0.003877159441f, -0.002713048365f, -0.002077806275f,
    },
    {  // the coefficients of u^2
        0.2054645121f, 0.1424646676f, 0.1004436836f, 0.07229109108f,
        0.04623297229f, 0.02714349143f, 0.01695370488f, 0.01115954947f,
        0.006391210016f, 0.003419642337f, 0.002013721038f, 0.001277396455f,
        0.0007137577632f, 0.0003769130562f, 0.0002215284912f, 0.0001488113194f,
    },
    {  // the coefficients of u^3
        -0.1054828912f, -0.0682605058f, -0.04489759356f, -0.03017100878f,
        -0.01748722605f, -0.00906127505f, -0.005033562891f, -0.002970180474f,
        -0.001460042084f, -0.0006526921061f, -0.0003281364334f, -0.0001810499525f,
        -8.429631271e-5f, -3.631035361e-5f, -1.797175537e-5f, -1.060464911e-5f,
    },
    {  // the coefficients of u^4
        0.04806611687f, 0.0292820856f, 0.01811918989f, 0.01145970821f,
        0.006085602567f, 0.00281859003f, 0.001407525735f, 0.0007512189331f,
        0.0003204125969f, 0.0001209005131f, 5.226060239e-5f, 2.520630733e-5f,
        9.830291674e-6f, 3.467780061e-6f, 1.448829266e-6f, 7.520109762e-7f,
    },
    {  // the coefficients of u^5
        -0.01996784844f, -0.01151647791f, -0.006742732134f, -0.004035995342f,
        -0.0019932047f, -0.0008317254833f, -0.0003759773681f, -0.0001825832878f,
        -6.900679728e-5f, -2.206801037e-5f, -8.227703802e-6f, -3.476985967e-6f,
        -1.158115197e-6f, -3.334483836e-7f, -1.173760396e-7f, -5.332702102e-8f,
    },
    {  // the coefficients of u^6
        0.007614511065f, 0.004140987527f, 0.002315476537f, 0.001329284394f,
        0.0006087320508f, 0.0002308850526f, 9.500537999e-5f, 4.202296623e-5f,
        1.406677438e-5f, 3.859135632e-6f, 1.254909876e-6f, 4.672839964e-7f,
        1.316022207e-7f, 3.124554127e-8f, 9.36288469e-9f, 3.74297926e-9f,
    },
};
// clang-format on

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_MILLS_TABLE_H_
