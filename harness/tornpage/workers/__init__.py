"""The workers of a run: processes of this machine, or the workers of a cluster."""
