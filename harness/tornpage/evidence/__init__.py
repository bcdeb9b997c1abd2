"""What is shown of a finding: its image, the last operations before the crash, and the pages that it hurt."""
