"""What the examples share: corpus, stores, models, command line and printing, one file each."""
