"""Worker processes for extraction, segmentation and fingerprinting."""
