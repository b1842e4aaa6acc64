"""Fused CPU kernels: a program as one loop nest, compiled by LLVM."""
