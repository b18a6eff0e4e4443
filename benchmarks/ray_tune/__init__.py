"""Ray Tune: what a certificate costs beside ASHA's answer, and what schedulers cost per result."""
