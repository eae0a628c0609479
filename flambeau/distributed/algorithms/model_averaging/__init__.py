"""Parameters that are averaged now and then, instead of gradients in every step."""
