"""How often a certificate is wrong, against the delta that it promises."""
