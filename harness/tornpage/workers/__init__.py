"""Who does the work of a run: processes of this machine, or the workers of a cluster."""
