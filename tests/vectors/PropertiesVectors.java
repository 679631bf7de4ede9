import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.StringReader;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

/** Writes properties.json of this folder: texts, and what java.util.Properties reads in them; README.md says how to run it. */
public class PropertiesVectors {
    static final List<String> PIECES = List.of("a", "b", "key", "value", " ", "\t", "\f", "=", ":", "#", "!", "\\", "\\\\", "\n", "\r", "\r\n", "\\\n",
        "\\\r\n", "\\u0041", "\\u00e9", "\\u41", "\\t", "\\n", "\\=", "\\ ", "\\#", "\u00e9", "\u0085", "\u001c", "\u00a0");

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        ArrayNode cases = json.createArrayNode();
        for (String text : List.of("", "a", "a=b", "a:b", "a b", " a = b ", "a==b", "a=:b", "a = = b", "=b", ":", "a=", "#a=b", "!a=b", "  # a=b", "a=b#c",
            "a\\=b=c", "a\\ b=c", "a=b\\", "a=b\\\\", "a=b\\\n", "a=b\\\n\nc=d", "a=b\\\n  # c\nd=e", "\\\n#a", "\\\n# a=b\nc=d", "a\\\n=b", "a=b\r\nc=d\rc=e", "a=1\na=2",
            "a=\\u0041", "a=\\u00zz", "a=\\u1", "a=\\q", "a=\\u000Ab", "\\u0061=b", "a=b\u0085c=d", "a=\u00e9", "\ta\t=\tb\t", "\fa\f=\fb\f")) {
            add(json, cases, text);
        }
        Random random = new Random(5);
        for (int n = 0; n < 3000; n++) {
            StringBuilder text = new StringBuilder();
            for (int pieces = 1 + random.nextInt(10); pieces > 0; pieces--) {
                text.append(PIECES.get(random.nextInt(PIECES.size())));
            }
            add(json, cases, text.toString());
        }
        try (java.io.PrintWriter out = new java.io.PrintWriter(new File(arguments[0], "properties.json"), "UTF-8")) {
            out.println("[");
            for (int i = 0; i < cases.size(); i++) {
                out.println(json.writeValueAsString(cases.get(i)) + (i + 1 < cases.size() ? "," : ""));
            }
            out.println("]");
        }
    }

    static void add(ObjectMapper json, ArrayNode cases, String text) throws Exception {
        ObjectNode row = cases.addObject();
        row.put("text", text);
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text));
            row.set("properties", json.valueToTree(new TreeMap<>(properties)));
        } catch (IllegalArgumentException error) {
            row.put("error", error.getMessage());
        }
    }
}
