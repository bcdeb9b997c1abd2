"""The bundled engine as a target, and all that only its images have."""
