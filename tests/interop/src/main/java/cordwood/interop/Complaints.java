package cordwood.interop;

import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.Marker;
import org.slf4j.helpers.FormattingTuple;
import org.slf4j.helpers.MessageFormatter;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Remembers the warnings and errors that Kafka logs, and drops the rest. */
public final class Complaints implements ILoggerFactory {
    private static final List<String> HEARD = new ArrayList<>();
    private final Map<String, Logger> loggers = new ConcurrentHashMap<>();

    /** What was logged since the last call, oldest first: "WARN class: message". */
    static List<String> taken() {
        synchronized (HEARD) {
            List<String> taken = List.copyOf(HEARD);
            HEARD.clear();
            return taken;
        }
    }

    @Override
    public Logger getLogger(String name) {
        return loggers.computeIfAbsent(name, n -> (Logger) Proxy.newProxyInstance(
            Complaints.class.getClassLoader(), new Class<?>[] {Logger.class}, new Listener(n)));
    }

    private record Listener(String name) implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) {
            String called = method.getName();
            switch (called) {
                case "getName", "toString": return name;
                case "hashCode": return name.hashCode();
                case "equals": return proxy == arguments[0];
                case "isWarnEnabled", "isErrorEnabled": return true;
                case "warn", "error": break;
                default: return method.getReturnType() == boolean.class ? false : null;
            }
            int format = arguments[0] instanceof Marker ? 1 : 0;
            Object[] rest = Arrays.copyOfRange(arguments, format + 1, arguments.length);
            if (rest.length == 1 && rest[0] instanceof Object[] many) rest = many;
            FormattingTuple text = MessageFormatter.arrayFormat((String) arguments[format], rest);
            String cause = text.getThrowable() == null ? "" : " (" + text.getThrowable() + ")";
            synchronized (HEARD) {
                HEARD.add(called.toUpperCase() + " " + name.substring(name.lastIndexOf('.') + 1) + ": " + text.getMessage() + cause);
            }
            return null;
        }
    }
}
