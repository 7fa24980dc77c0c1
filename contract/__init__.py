"""What two programs must agree on: would they disagree if this changed? If not, it does not belong here."""
