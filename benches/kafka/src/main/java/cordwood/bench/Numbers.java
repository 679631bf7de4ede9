package cordwood.bench;

/** Pseudo-random numbers, the same in every run (splitmix64). */
final class Numbers {
    private long state;

    Numbers(long seed) {
        state = seed;
    }

    /** From 0 to below {@code end}. */
    long below(long end) {
        state += 0x9E3779B97F4A7C15L;
        long z = state;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return ((z ^ z >>> 31) >>> 1) % end;
    }
}
