"""Worker processes: extraction, segmentation and fingerprints outside the main process."""
