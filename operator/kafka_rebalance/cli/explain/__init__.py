"""What `explain` says: facts as sentences and as documents."""
