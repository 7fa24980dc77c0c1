"""What people watch the work with, beside the command line."""
