/*
 * Short floats in tests: bfloat16 and half precision (IEEE 754 binary16) as 16 bits, to nearest
 * even. Written by their definitions in double, apart from what is tested.
 */
#pragma once

#include <stdint.h>

double bf16_value(uint16_t bits);
double fp16_value(uint16_t bits);
uint16_t bf16_bits(double value);
uint16_t fp16_bits(double value);
