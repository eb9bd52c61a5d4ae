"""The parts of the quickstart: corpus, stores, models and printing, one file each."""
