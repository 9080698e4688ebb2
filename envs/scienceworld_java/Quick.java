package skillarena;

import scala.runtime.BoxesRunTime;
import scienceworld.struct.EnvObject;

/**
 * What the simulator's hot spots call instead of the library; the answers are the library's.
 *
 * Compile it with: javac --release 8 -g:none -cp scienceworld.jar -d OUT Quick.java
 */
public final class Quick {
    private Quick() {}

    /** {@code BoxesRunTime.equals}, which for two of the simulator's objects compares their ids. */
    public static boolean same(Object one, Object other) {
        if (one == other) return true;
        if (one instanceof EnvObject && other instanceof EnvObject) {
            return ((EnvObject) one).uuid() == ((EnvObject) other).uuid();
        }
        return BoxesRunTime.equals(one, other);
    }

    /** {@code text.replaceAll("\\s+", " ")}, which leaves a text alone whose only white space is single blanks. */
    public static String singleBlanks(String text, String pattern, String blank) {
        boolean afterBlank = false;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c <= ' ' && (c != ' ' || afterBlank)) return text.replaceAll(pattern, blank);
            afterBlank = c == ' ';
        }
        return text;
    }
}
