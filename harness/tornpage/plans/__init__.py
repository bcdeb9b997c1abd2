"""What to run: campaign files, their limits, what is drawn from them, and with which programs."""
