/* The part of CUDA's header of this name that cuda/blas_cublas.c uses. */
#pragma once

typedef enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType;
typedef enum cudaDataType_t cudaDataType_t;
