//! Compute kernels behind safe slices: quantised matmul, paged attention, norms; one ISA per file.
