"""Why the forms are equal: claims, their proofs, and the second engine that re-checks them."""
