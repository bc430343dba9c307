// SPDX-License-Identifier: Apache-2.0
//
// The tables behind the activations of a block: f(a) for a >= 0, where an activation is
// relu(x) - |x| f(|x|), in 16 intervals with a polynomial of degree 5 in u = a - centre each. Holds
// numbers only; activation_math-inl.h evaluates them.
//
// Minimax by the Remez algorithm on the absolute error of f; the largest |a error| with the rounded
// coefficients stands at each table, in halves of an f32 ulp of a. Centres are chosen so that f is
// an f32 to some 30 bits there, and rounding the first coefficient costs nothing (Gal's accurate
// tables). The last interval ends at its own centre with f = 0, so what lies beyond is clamped to
// it and gives exactly 0. Made by tools/vec_math_coefficients.py.

#ifndef ENCORE_ENGINE_KERNELS_ACTIVATION_TABLES_H_
#define ENCORE_ENGINE_KERNELS_ACTIVATION_TABLES_H_

namespace encore::internal {

inline constexpr int kTailIntervals = 16;
inline constexpr int kTailDegree = 5;

// Centres at k * kStep for k = 0 .. 15.
struct EvenTail {
  float step;
  float inverse_step;
  float limit;  // 15 * step, exactly
  alignas(64) float power[kTailDegree + 1][kTailIntervals];
};

// Four intervals an octave: the interval is the low two bits of the exponent of a * scale + 2
// joined with the upper two of its mantissa.
struct OctaveTail {
  float scale;
  float limit;  // the centre of the last interval
  alignas(64) float centre[kTailIntervals];
  alignas(64) float power[kTailDegree + 1][kTailIntervals];
};

// clang-format off
// The normal distribution function Phi(-a). Largest error 0.26 half ulps.
inline constexpr EvenTail kGeluTail = {
  0.375556945801f, 2.662712097f, 5.633354187f,
  {
    {  // the coefficients of u^0
        0.5f, 0.3536231518f, 0.2262920588f, 0.1299408376f,
        0.06651914865f, 0.03020530753f, 0.0121188052f, 0.004283094313f,
        0.001330283238f, 0.0003624129167f, 8.64740723e-5f, 1.804958447e-5f,
        3.292469501e-6f, 5.244452836e-7f, 7.289759907e-8f, 0.0f,
    },
    {  // the coefficients of u^1
        -0.3989422619f, -0.3717773855f, -0.3008857667f, -0.2114784718f,
        -0.129085198f, -0.06842778623f, -0.03150172532f, -0.01259453036f,
        -0.004372959491f, -0.001318605151f, -0.0003453028039f, -7.852927956e-5f,
        -1.550991692e-5f, -2.660321343e-6f, -3.962833546e-7f, -1.924470752e-7f,
    },
    {  // the coefficients of u^2
        -2.984781702e-7f, 0.06980995834f, 0.1129976287f, 0.1191323996f,
        0.09695813805f, 0.06424729526f, 0.03549276665f, 0.01655508019f,
        0.006569104735f, 0.002228316152f, 0.000648312096f, 0.0001621639531f,
        3.49336151e-5f, 6.48969808e-6f, 1.040736265e-6f, -6.076340355e-7f,
    },
    {  // the coefficients of u^3
        0.06649716198f, 0.05322249606f, 0.02185623907f, -0.009493696503f,
        -0.02703582495f, -0.02880893648f, -0.02140869014f, -0.01240827329f,
        -0.005850234535f, -0.002290951321f, -0.0007541140076f, -0.0002102462167f,
        -4.990215893e-5f, -1.012039957e-5f, -1.758472195e-6f, -1.601550821e-6f,
    },
    {  // the coefficients of u^4
        -6.401171413e-5f, -0.01649352722f, -0.02277733758f, -0.01711263694f,
        -0.006040636916f, 0.002742995042f, 0.006092668045f, 0.005380133633f,
        0.003305133898f, 0.001574662863f, 0.0006069498486f, 0.0001933770254f,
        5.157327178e-5f, 1.160788815e-5f, 2.217338078e-6f, 3.013844037e-7f,
    },
    {  // the coefficients of u^5
        -0.009741740301f, -0.006687863264f, 0.0001431620767f, 0.005236761179f,
        0.005820885301f, 0.003262495622f, 0.0004605692229f, -0.0009598227334f,
        -0.001099098823f, -0.0007145090494f, -0.0003396722313f, -0.0001270459179f,
        -3.862783342e-5f, -9.720044545e-6f, -2.046949021e-6f, -5.496684707e-7f,
    },
  }
};

// 1 / (1 + e^y), y = 2 sqrt(2 / pi) (a + 0.044715 a^3). Largest error 0.25 half ulps.
inline constexpr EvenTail kGeluTanhTail = {
  0.358703613281f, 2.787817001f, 5.380554199f,
  {
    {  // the coefficients of u^0
        0.5f, 0.3599222898f, 0.2366448939f, 0.141104877f,
        0.0758299008f, 0.03648444638f, 0.01558405068f, 0.005844125059f,
        0.001897285692f, 0.0005245293141f, 0.0001212694406f, 2.300307278e-5f,
        3.51067979e-6f, 4.226840247e-7f, 3.93631332e-8f, 0.0f,
    },
    {  // the coefficients of u^1
        -0.3989422917f, -0.3739758432f, -0.3081684113f, -0.2234409302f,
        -0.142714709f, -0.08030258119f, -0.03969268873f, -0.0171126388f,
        -0.006360020954f, -0.002006202936f, -0.0005274695577f, -0.0001133678816f,
        -1.952620732e-5f, -2.641980245e-6f, -2.753068316e-7f, -6.815665188e-8f,
    },
    {  // the coefficients of u^2
        -2.486831079e-7f, 0.06734701991f, 0.1107067689f, 0.1199276075f,
        0.1017536819f, 0.07153138518f, 0.04268125817f, 0.02178455517f,
        0.009476423264f, 0.003472231328f, 0.001053791028f, 0.0002598651336f,
        5.104130832e-5f, 7.827101399e-6f, 9.18728233e-7f, -1.782779577e-7f,
    },
    {  // the coefficients of u^3
        0.06682539731f, 0.05439192057f, 0.02457313426f, -0.006237130146f,
        -0.02498007752f, -0.02903685346f, -0.02358713374f, -0.01520473137f,
        -0.008063997142f, -0.003533618525f, -0.001266080886f, -0.000364747335f,
        -8.291063568e-5f, -1.458728912e-5f, -1.94898962e-6f, -6.825503078e-7f,
    },
    {  // the coefficients of u^4
        -5.844892439e-5f, -0.01624616981f, -0.02296495996f, -0.01814790256f,
        -0.007671792991f, 0.001240501297f, 0.005434718449f, 0.00569117628f,
        0.004094135016f, 0.002281289315f, 0.00100721803f, 0.0003506497305f,
        9.495626728e-5f, 1.968447395e-5f, 3.072428171e-6f, 2.663089163e-7f,
    },
    {  // the coefficients of u^5
        -0.009979979135f, -0.007034393027f, -0.0002685882791f, 0.005022313446f,
        0.005936231464f, 0.003719063941f, 0.001059528906f, -0.0005650996463f,
        -0.001061840332f, -0.0008926300798f, -0.0005247410154f, -0.000230259524f,
        -7.60401017e-5f, -1.877548675e-5f, -3.428355058e-6f, -7.448669521e-7f,
    },
  }
};

// 1 / (1 + e^a). Largest error 0.29 half ulps.
inline constexpr OctaveTail kSiluTail = {
  1.666650057f, 18.0f,
    {  // the centres
        0.1538772583f, 0.4507293701f, 0.7473182678f, 1.052818298f,
        1.504951477f, 2.105144501f, 2.702281952f, 3.302806854f,
        4.20545578f, 5.401294708f, 6.594364166f, 7.805465698f,
        9.601070404f, 11.99446869f, 14.40534592f, 18.0f,
    },
  {
    {  // the coefficients of u^0
        0.4616064131f, 0.3891873658f, 0.3214059174f, 0.2586842775f,
        0.1816881895f, 0.1085978076f, 0.0628388375f, 0.03547502309f,
        0.01469483413f, 0.004490488209f, 0.00136619003f, 0.0004073364253f,
        6.766082515e-5f, 6.179090178e-6f, 5.54493397e-7f, 0.0f,
    },
    {  // the coefficients of u^1
        -0.2485259324f, -0.237720564f, -0.2181041539f, -0.191766724f,
        -0.1486776024f, -0.09680431336f, -0.05889011174f, -0.03421654552f,
        -0.01447888091f, -0.00447032135f, -0.001364321564f, -0.0004071707954f,
        -6.765518629e-5f, -6.178815966e-6f, -5.544928285e-7f, -3.440517204e-8f,
    },
    {  // the coefficients of u^2
        0.009541740641f, 0.02634229511f, 0.03895195574f, 0.04627622664f,
        0.04732580483f, 0.03789010271f, 0.02574489079f, 0.01589456759f,
        0.007026414387f, 0.002214753535f, 0.0006801693235f, 0.0002033784549f,
        3.370548075e-5f, 3.078668215e-6f, 2.762739086e-7f, -1.079816014e-9f,
    },
    {  // the coefficients of u^3
        0.02034414746f, 0.01689097285f, 0.01121856272f, 0.004813558422f,
        -0.002673833631f, -0.006763387006f, -0.006347266957f, -0.004532129969f,
        -0.002203695476f, -0.0007249941118f, -0.0002255120926f, -6.767732702e-5f,
        -1.123493803e-5f, -1.026965151e-6f, -9.208279295e-8f, -4.99883468e-9f,
    },
    {  // the coefficients of u^4
        -0.001568875159f, -0.004049507901f, -0.005231309216f, -0.005006089341f,
        -0.003091603285f, -0.0005305805826f, 0.0006168705295f, 0.0007768935175f,
        0.0004858523025f, 0.0001771425159f, 5.670487371e-5f, 1.716835504e-5f,
        3.024130592e-6f, 2.764852809e-7f, 2.481451844e-8f, -3.861179987e-10f,
    },
    {  // the coefficients of u^5
        -0.001976366155f, -0.001285669394f, -0.0002937357931f, 0.0005322632496f,
        0.0009861147264f, 0.0006334896898f, 0.0001766739297f, -3.013364221e-5f,
        -7.034702867e-5f, -3.267595093e-5f, -1.100962163e-5f, -3.42557928e-6f,
        -6.026551205e-7f, -5.480219656e-8f, -4.972509959e-9f, -4.42429704e-10f,
    },
  }
};
// clang-format on

static_assert(15 * kGeluTail.step == kGeluTail.limit);
static_assert(15 * kGeluTanhTail.step == kGeluTanhTail.limit);
static_assert(kSiluTail.centre[15] == kSiluTail.limit);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ACTIVATION_TABLES_H_
