"""What a service process keeps in its folder, and how it comes back from it."""
