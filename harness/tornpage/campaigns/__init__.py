"""Running whole campaigns: one, those of a night, all of a target; playing again what they found."""
