"""How twinsieve is put to work: images, a compose file, a broker to test and try with."""
