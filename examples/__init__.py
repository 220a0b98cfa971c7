"""Programs that use Korvet Fast, each of them run by a test in tests/examples."""
