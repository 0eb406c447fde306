/* What tests ask of the fake cuBLAS. */
#pragma once

/* Handles that are created and not destroyed, of all threads. */
long fake_cublas_handles(void);

/* Product number n from now on (counted from 0) fails, once; below 0: none. */
void fake_cublas_fail_after(long n_products);
