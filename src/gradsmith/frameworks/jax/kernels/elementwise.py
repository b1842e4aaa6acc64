"""JAX's elementwise kernels: its names are NumPy's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ELEMENTWISE: dict[str, Any] = {
    name: getattr(jnp, name)
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and hasattr(jnp, name)
}

SPECIAL: dict[str, Any] = {
    "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "erfinv": jax.scipy.special.erfinv,
    "gammaln": jax.scipy.special.gammaln,
    "digamma": jax.scipy.special.digamma,
    "ndtr": jax.scipy.special.ndtr,
    "ndtri": jax.scipy.special.ndtri,
    "log_ndtr": jax.scipy.special.log_ndtr,
    "expit": jax.nn.sigmoid,
    "log_expit": jax.nn.log_sigmoid,
    "logit": jax.scipy.special.logit,
}


def clip(x: Any, low: Any, high: Any) -> Any:
    """At a bound the derivative is x's; JAX's own halves it there."""
    if low is not None:
        x = jnp.where((x < low) | jnp.isnan(low), low, x)
    if high is not None:
        x = jnp.where((x > high) | jnp.isnan(high), high, x)
    return x


where, real, imag, complex = jnp.where, jnp.real, jnp.imag, jax.lax.complex
