"""The commands of `flambeau` that look at files: a module each, with `main(words) -> exit code`."""
