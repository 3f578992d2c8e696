"""Pages: they read, check who asks, and leave the deciding to `threads.rounds`."""
