"""What is to be run: campaign files, how far they go, what is drawn from them, and with which programs."""
