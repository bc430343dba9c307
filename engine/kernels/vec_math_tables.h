// SPDX-License-Identifier: Apache-2.0
//
// The tables behind Exp, eighths of a power of two, and behind Tanh and Gelu: functions of a >= 0
// in 16 intervals. Holds numbers only; vec_math-inl.h evaluates them.
//
// Tanh and Gelu have four intervals an octave of t = scale * a + 2: the low two bits of its
// exponent joined with the upper two of its mantissa. In each the function is sum_k c[k] u^k with
// u = a - centre, minimax by the Remez algorithm on the relative error. Each centre is a point near
// the middle where c[0] happens to be an f32 to some 33 bits, so that rounding it costs nothing
// (Gal's accurate tables). Made by tests/make/vec_math_coefficients.py.

#ifndef ENCORE_ENGINE_KERNELS_VEC_MATH_TABLES_H_
#define ENCORE_ENGINE_KERNELS_VEC_MATH_TABLES_H_

#include <cstdint>

namespace encore::inline v0_1::internal {

inline constexpr int kIntervals = 16;

// 2^(i / 8) for i = 0 .. 7, what their rounding lost in proportion to them, and their bits less
// (127 << 23) and i << 20, so that adding N << 20 with N = 8 (n + 127) + i makes 2^(n + i / 8). The
// first two twice, for vectors of 16.
// clang-format off
alignas(64) inline constexpr float kEighthPowers[16] = {
    1.0f, 1.090507746f, 1.189207077f, 1.296839595f,
    1.414213538f, 1.542210817f, 1.681792855f, 1.834008098f,
    1.0f, 1.090507746f, 1.189207077f, 1.296839595f,
    1.414213538f, 1.542210817f, 1.681792855f, 1.834008098f,
};
alignas(64) inline constexpr float kEighthPowersLow[16] = {
    0.0f, -1.199215749e-8f, 3.193418152e-8f, -3.099071932e-8f,
    1.711427089e-8f, 5.23333421e-9f, -1.471960509e-8f, -6.128259677e-9f,
    0.0f, -1.199215749e-8f, 3.193418152e-8f, -3.099071932e-8f,
    1.711427089e-8f, 5.23333421e-9f, -1.471960509e-8f, -6.128259677e-9f,
};
alignas(64) inline constexpr uint32_t kEighthPowerBits[8] = {
    0x00000000, 0xfffb95c2, 0xfff837f0, 0xfff5fed7,
    0xfff504f3, 0xfff5672a, 0xfff744fd, 0xfffac0c7,
};
// clang-format on

// tanh a; but for the first interval: that - a. Relative error below 1.9e-8, a third of half an
// ulp. The last centre is the last point, and the value there is 1.
inline constexpr int kTanhDegree = 5;
inline constexpr float kTanhScale = 3.325909138f;
inline constexpr float kTanhLimit = 9.020000458f;
inline constexpr float kTanhFirstEnd = 0.17f;  // above the first interval, below any other c[0]

// clang-format off
alignas(64) inline constexpr float kTanhTable[kTanhDegree + 2][kIntervals] = {
    {  // the centres
        0.0f, 0.2273368835f, 0.3725700378f, 0.5277824402f,
        0.7528381348f, 1.050540924f, 1.355949402f, 1.658248901f,
        2.099971771f, 2.706264496f, 3.309597015f, 3.904270172f,
        4.806365967f, 6.012752533f, 7.219223022f, 9.020000458f,
    },
    {  // the coefficients of u^0
        0.0f, 0.2234997749f, 0.3562376499f, 0.4836841524f,
        0.6368390918f, 0.7820165753f, 0.8754502535f, 0.9299809337f,
        0.9704502821f, 0.9911189079f, 0.9973345399f, 0.9991878271f,
        0.9998662472f, 0.9999880195f, 0.9999989271f, 1.0f,
    },
    {  // the coefficients of u^1
        0.0f, 0.9500478506f, 0.8730947375f, 0.7660496235f,
        0.5944359899f, 0.3884500861f, 0.233586818f, 0.135135442f,
        0.05822616071f, 0.01768330112f, 0.005323817953f, 0.001623682794f,
        0.0002674750867f, 2.396038326e-5f, 2.145770168e-6f, 1.320694594e-7f,
    },
    {  // the coefficients of u^2
        0.0f, -0.2123343498f, -0.3110279739f, -0.3705252707f,
        -0.3785598874f, -0.3037799001f, -0.2044969797f, -0.1256743968f,
        -0.05650353432f, -0.01752358302f, -0.005308609456f, -0.001622039126f,
        -0.0002665118081f, -2.387590393e-5f, -2.138165883e-6f, 8.097632787e-9f,
    },
    {  // the coefficients of u^3
        -0.3333527446f, -0.2692347169f, -0.1802274734f, -0.07613731176f,
        0.04292448238f, 0.1080716401f, 0.1011703461f, 0.07183268666f,
        0.03543188423f, 0.01147500984f, 0.003520034021f, 0.00107979693f,
        0.0001778033038f, 1.592351691e-5f, 1.42519059e-6f, 7.692531767e-8f,
    },
    {  // the coefficients of u^4
        0.0005372056621f, 0.1304003298f, 0.1672946662f, 0.1599578559f,
        0.09881840646f, 0.01739372872f, -0.02000584081f, -0.02479175292f,
        -0.01560962293f, -0.005610491149f, -0.001771221054f, -0.0005477363593f,
        -9.567541565e-5f, -8.580147551e-6f, -7.684525372e-7f, 1.208356348e-8f,
    },
    {  // the coefficients of u^5
        0.1294226348f, 0.08289971203f, 0.01893676631f, -0.0341733098f,
        -0.06310641021f, -0.04038689658f, -0.01113292016f, 0.002001665533f,
        0.004490698222f, 0.002070983872f, 0.0006949334638f, 0.0002155423135f,
        3.776996164e-5f, 3.416104164e-6f, 3.083113427e-7f, 2.728503468e-8f,
    },
};
// clang-format on

// 2 a Phi(-a) e^(a^2 / 2), Phi the normal distribution function, for a <= 14.5; but for the first
// interval: that - a. Relative error below 4.6e-9.
inline constexpr int kGeluDegree = 6;
inline constexpr float kGeluScale = 2.0f;
inline constexpr float kGeluLimit = 14.5f;
inline constexpr float kGeluFirstEnd = 0.27f;

// clang-format off
alignas(64) inline constexpr float kGeluTable[kGeluDegree + 2][kIntervals] = {
    {  // the centres
        0.0f, 0.3788146973f, 0.6253547668f, 0.8727760315f,
        1.254116058f, 1.750156403f, 2.255348206f, 2.747207642f,
        3.50396347f, 4.500408173f, 5.503101349f, 6.500579834f,
        7.994678497f, 9.996330261f, 11.99739075f, 13.75170517f,
    },
    {  // the coefficients of u^0
        0.0f, 0.2868594527f, 0.4043373168f, 0.4889531136f,
        0.5776616931f, 0.6483278275f, 0.6917954087f, 0.7188616991f,
        0.7445172071f, 0.7632361054f, 0.7737945914f, 0.7802067399f,
        0.7859455347f, 0.7901283503f, 0.792452991f, 0.7937306166f,
    },
    {  // the coefficients of u^1
        0.0f, 0.5636715293f, 0.4004660547f, 0.290599525f,
        0.184427619f, 0.108692266f, 0.06746754795f, 0.04457774758f,
        0.02548134327f, 0.01366045233f, 0.00804109592f, 0.005105013493f,
        0.002859913278f, 0.001508199726f, 0.0008874464547f, 0.0005948886392f,
    },
    {  // the coefficients of u^2
        -0.7978841662f, -0.4042616189f, -0.268330574f, -0.1821172982f,
        -0.1045761406f, -0.05444251373f, -0.03000775911f, -0.01779070124f,
        -0.008724547923f, -0.003909659572f, -0.001964489697f, -0.001085047261f,
        -0.0005069947802f, -0.0002179820003f, -0.0001080493385f, -6.357774691e-5f,
    },
    {  // the coefficients of u^3
        0.4999774694f, 0.2307875603f, 0.1442983001f, 0.09231679887f,
        0.04849434271f, 0.02258431725f, 0.01117417309f, 0.00599717861f,
        0.002550051315f, 0.0009651092114f, 0.0004169292515f, 0.0002013545163f,
        7.884770457e-5f, 2.775623216e-5f, 1.161909222e-5f, 6.010086508e-6f,
    },
    {  // the coefficients of u^4
        -0.2655444443f, -0.1128898263f, -0.06688264757f, -0.04056283832f,
        -0.01964952052f, -0.00826503057f, -0.003701592796f, -0.001811278402f,
        -0.0006736713112f, -0.000217227338f, -8.118497499e-5f, -3.443845708e-5f,
        -1.135677394e-5f, -3.285457296e-6f, -1.164167543e-6f, -5.300566386e-7f,
    },
    {  // the coefficients of u^5
        0.1215820163f, 0.04933429137f, 0.02781031653f, 0.01605207287f,
        0.007278422359f, 0.002780168783f, 0.0011330212f, 0.0005076866364f,
        0.000169065519f, 4.651955896e-5f, 1.506535136e-5f, 5.620192042e-6f,
        1.598540962e-6f, 3.778527002e-7f, 1.129453366e-7f, 4.495223749e-8f,
    },
    {  // the coefficients of u^6
        -0.04008466005f, -0.01987352222f, -0.01056988258f, -0.005785672925f,
        -0.002489571692f, -0.0008612298989f, -0.0003245365515f, -0.0001319395669f,
        -3.952840052e-5f, -9.332416084e-6f, -2.64851019e-6f, -8.714761748e-7f,
        -2.102572978e-7f, -4.113717367e-8f, -1.04531912e-8f, -3.674345272e-9f,
    },
};
// clang-format on

static_assert(kTanhTable[0][kIntervals - 1] == kTanhLimit);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_VEC_MATH_TABLES_H_
