"""What a finding shows: its image, the last operations before the crash, and the damaged pages."""
