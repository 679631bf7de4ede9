package io.cordwood.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Loads the native library. The JVM allows a library file in one class loader only, and sessions with their
 * own jars have their own class loaders, so each class loader extracts the library to a file of its own.
 */
final class NativeLibrary {
    /** A system property: a directory for the extracted file, where {@code java.io.tmpdir} is mounted with noexec. */
    static final String DIRECTORY = "cordwood.library.dir";

    /** A system property: a library file that is loaded in place, instead of the one in the jar. */
    static final String PATH = "cordwood.library.path";

    private static boolean isLoaded;

    private NativeLibrary() { }

    /**
     * Loads the library, unless it is loaded. It is not a static initializer, because a class whose
     * initializer failed reports the reason only once.
     */
    static synchronized void load() {
        if (isLoaded) {
            return;
        }
        String path = System.getProperty(PATH);
        if (path != null) {
            link(Path.of(path), PATH + " is set to");
        } else {
            Path file = extract();
            try {
                link(file, "set the system property " + DIRECTORY + " to another directory than that of");
            } finally {
                // on Linux a loaded library stays mapped
                file.toFile().delete();
            }
        }
        isLoaded = true;
    }

    private static void link(Path file, String advice) {
        try {
            System.load(file.toAbsolutePath().toString());
        } catch (UnsatisfiedLinkError error) {
            String reason = "expected a native library that this JVM can load, found: " + error.getMessage();
            throw new CordwoodException("CORDWOOD_IO", reason + "; " + advice + " " + file, error);
        }
    }

    private static Path extract() {
        String resource = "META-INF/native/linux-" + System.getProperty("os.arch") + "/libcordwood.so";
        Path directory = Path.of(System.getProperty(DIRECTORY, System.getProperty("java.io.tmpdir")));
        try (InputStream library = NativeLibrary.class.getClassLoader().getResourceAsStream(resource)) {
            if (library == null) {
                String reason = "expected " + resource + " in the jar, found none: this build has no library for this "
                    + "platform; set the system property " + PATH + " to a library file";
                throw new CordwoodException("CORDWOOD_UNSUPPORTED", reason, null);
            }
            Path file = Files.createTempFile(directory, "libcordwood-", ".so");
            try {
                Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            } catch (IOException error) {
                file.toFile().delete();
                throw error;
            }
            return file;
        } catch (IOException error) {
            String reason = "expected a directory for the native library in which files can be created, found " + directory + ": "
                + error + "; set the system property " + DIRECTORY + " to another one";
            throw new CordwoodException("CORDWOOD_IO", reason, error);
        }
    }
}
