"""What a row is and how its call runs: registry, names, call path, recording, modes."""
