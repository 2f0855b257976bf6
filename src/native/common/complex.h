// Complex numbers without the C++ library, and the few words that let one template serve real and complex factors.
#pragma once

#include <math.h>

#include "level.h"

EXACTSHAP_BEGIN

struct Complex {
  double re, im;
  Complex() = default;
  EXACTSHAP_INLINE Complex(double real) : re(real), im(0.0) {}
  EXACTSHAP_INLINE Complex(double real, double imaginary) : re(real), im(imaginary) {}
};

EXACTSHAP_INLINE Complex operator+(Complex a, Complex b) { return Complex(a.re + b.re, a.im + b.im); }
EXACTSHAP_INLINE Complex operator-(Complex a, Complex b) { return Complex(a.re - b.re, a.im - b.im); }
EXACTSHAP_INLINE Complex operator*(Complex a, Complex b) {
  return Complex(rounded(a.re * b.re) - rounded(a.im * b.im), rounded(a.re * b.im) + rounded(a.im * b.re));
}
EXACTSHAP_INLINE Complex& operator+=(Complex& a, Complex b) { return a = a + b; }
EXACTSHAP_INLINE Complex& operator*=(Complex& a, Complex b) { return a = a * b; }

EXACTSHAP_INLINE double real(double x) { return x; }
EXACTSHAP_INLINE double real(Complex x) { return x.re; }
EXACTSHAP_INLINE double magnitude(double x) { return fabs(x); }
EXACTSHAP_INLINE double magnitude(Complex x) { return hypot(x.re, x.im); }

EXACTSHAP_END
