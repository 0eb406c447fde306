/* The part of CUDA's header of this name that cuda/blas_cublas.c uses. */
#pragma once

typedef struct CUstream_st *cudaStream_t;
typedef enum { cudaSuccess = 0 } cudaError_t;

/* Names of their own: a test may be linked with the real ones, too. */
#define cudaGetDevice fake_cudaGetDevice
#define cudaGetErrorString fake_cudaGetErrorString

cudaError_t cudaGetDevice(int *device);
const char *cudaGetErrorString(cudaError_t error);
