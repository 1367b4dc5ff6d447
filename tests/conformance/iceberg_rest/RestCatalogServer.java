package org.apache.iceberg.rest;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.iceberg.Files;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.util.Pair;

/**
 * A REST catalog: Iceberg's own, as its tests have it, over HTTP, with tables in local files and their names in SQLite.
 *
 *   RestCatalogServer FOLDER PORT     prints its port (0 is for any), and ends with its input; a second one goes on where
 *                                     the first ended
 *
 * It stands in the package of the catalog because routes are not public. Faults are asked for at a path of its own, each for the
 * next request of a route; FAULT is what becomes of the request, and STATUS what is answered:
 *
 *   POST /control/fault?route=UPDATE_TABLE&fault=FAULT&status=STATUS
 *
 *   before     it is not carried out                 after        it is carried out
 *   later      it is carried out at POST /control/release
 *   cut-before, cut-after        the same as the first two, and the connection ends without an answer
 *   die-before, die-after        the same, and the whole server ends
 *   silent     it is carried out, and the answer does not come for a while
 *   garbled    it is carried out, and the answer is a page of a proxy
 *
 *   POST /control/token?value=TOKEN      from now on requests need this token; an empty one takes all
 *   POST /control/seen                   the routes asked for since the last such question, in lines
 */
public final class RestCatalogServer {
  private static final ObjectMapper MAPPER = RESTObjectMapper.mapper();
  private static final long SILENCE_MS = 5000;
  private static final String PAGE = "<html><body>502 Bad Gateway</body></html>";

  private record Fault(String route, String kind, int status) {}

  /** A request that has been read, for it may be carried out after its connection is gone. */
  private record Asked(Route route, HTTPRequest.HTTPMethod method, String path, Map<String, String> query, Object body) {}

  private record Answer(int status, byte[] body) {}

  private final RESTCatalogAdapter adapter;
  private final List<Fault> faults = new ArrayList<>();
  private final List<Asked> held = new ArrayList<>();
  private final StringBuilder seen = new StringBuilder();
  private String token = "";

  private RestCatalogServer(RESTCatalogAdapter adapter) {
    this.adapter = adapter;
  }

  public static void main(String[] args) throws Exception {
    String folder = args[0];
    JdbcCatalog catalog = new JdbcCatalog(properties -> new LocalFiles(), null, true);
    catalog.initialize(
        "rest",
        Map.of(
            "uri", "jdbc:sqlite:" + folder + "/catalog.db?busy_timeout=20000",
            "warehouse", "file://" + folder,
            "jdbc.schema-version", "V1"));
    RestCatalogServer made = new RestCatalogServer(new RESTCatalogAdapter(catalog));
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[1])), 0);
    server.createContext("/", made::serve);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
    System.out.println(server.getAddress().getPort());
    while (System.in.read() >= 0) {}
    Runtime.getRuntime().halt(0);
  }

  private void serve(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getRawPath().substring(1);
    Map<String, String> query = form(exchange.getRequestURI().getRawQuery());
    byte[] body = exchange.getRequestBody().readAllBytes();
    Answer answer;
    try {
      answer = path.startsWith("control/") ? control(path, query) : asked(exchange, path, query, body);
    } catch (RuntimeException | LinkageError error) {
      answer = failed(500, error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
    }
    if (answer == null) {
      // Closed without a status line: the client sees the connection end.
      exchange.close();
      return;
    }
    boolean empty = answer.body.length == 0 || exchange.getRequestMethod().equals("HEAD");
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(answer.status, empty ? -1 : answer.body.length);
    if (!empty) {
      exchange.getResponseBody().write(answer.body);
    }
    exchange.close();
  }

  private synchronized Answer control(String path, Map<String, String> query) throws IOException {
    switch (path) {
      case "control/fault" ->
          faults.add(new Fault(query.get("route"), query.get("fault"), Integer.parseInt(query.get("status"))));
      case "control/token" -> token = query.getOrDefault("value", "");
      case "control/release" -> {
        for (Asked one : held) {
          run(one);
        }
        held.clear();
      }
      case "control/seen" -> {
        byte[] lines = seen.toString().getBytes(StandardCharsets.UTF_8);
        seen.setLength(0);
        return new Answer(200, lines);
      }
      default -> throw new IllegalArgumentException("no such switch: " + path);
    }
    return new Answer(204, new byte[0]);
  }

  private Answer asked(HttpExchange exchange, String path, Map<String, String> query, byte[] body) throws IOException {
    HTTPRequest.HTTPMethod method = HTTPRequest.HTTPMethod.valueOf(exchange.getRequestMethod());
    Pair<Route, Map<String, String>> found = Route.from(method, path);
    if (found == null) {
      return failed(400, "BadRequestException", "no route for " + method + " " + path);
    }
    Route route = found.first();
    String given = exchange.getRequestHeaders().getFirst("Authorization");
    Fault fault;
    synchronized (this) {
      seen.append(route).append('\n');
      if (!token.isEmpty() && route != Route.TOKENS && !("Bearer " + token).equals(given)) {
        return failed(401, "NotAuthorizedException", "no or another token");
      }
      fault = faults.stream().filter(one -> one.route.equals(route.name())).findFirst().orElse(null);
      faults.remove(fault);
    }
    Object decoded = null;
    if (route == Route.TOKENS) {
      decoded = form(new String(body, StandardCharsets.UTF_8));
    } else if (route.requestClass() != null) {
      decoded = MAPPER.readValue(body, route.requestClass());
    }
    Asked asked = new Asked(route, method, path, query, decoded);
    return fault == null ? run(asked) : faulty(asked, fault);
  }

  private Answer faulty(Asked asked, Fault fault) throws IOException {
    switch (fault.kind) {
      case "after", "cut-after", "die-after", "garbled", "silent" -> {
        Answer done = run(asked);
        if (done.status >= 300) {
          return done;
        }
      }
      case "later" -> {
        synchronized (this) {
          held.add(asked);
        }
      }
      default -> {}
    }
    if (fault.kind.startsWith("die")) {
      Runtime.getRuntime().halt(1);
    }
    if (fault.kind.equals("silent")) {
      try {
        Thread.sleep(SILENCE_MS);
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      }
    }
    if (fault.kind.startsWith("cut")) {
      return null;
    }
    if (fault.kind.equals("garbled")) {
      return new Answer(fault.status, PAGE.getBytes(StandardCharsets.UTF_8));
    }
    return failed(fault.status, "FaultException", "asked for by the test");
  }

  private Answer run(Asked asked) throws IOException {
    ErrorResponse[] error = new ErrorResponse[1];
    RESTResponse response = null;
    try {
      response =
          adapter.execute(
              adapter.buildRequest(asked.method, asked.path, asked.query, Map.of(), asked.body),
              asked.route.responseClass(),
              refused -> error[0] = refused,
              headers -> {});
    } catch (RESTException thrown) {
      if (error[0] == null) {
        throw thrown;
      }
    }
    if (error[0] != null) {
      return new Answer(error[0].code(), MAPPER.writeValueAsBytes(error[0]));
    }
    return response == null ? new Answer(204, new byte[0]) : new Answer(200, MAPPER.writeValueAsBytes(response));
  }

  private static Answer failed(int status, String type, String message) throws IOException {
    ErrorResponse error = ErrorResponse.builder().responseCode(status).withType(type).withMessage(message).build();
    return new Answer(status, MAPPER.writeValueAsBytes(error));
  }

  private static Map<String, String> form(String text) {
    Map<String, String> found = new HashMap<>();
    for (String one : text == null || text.isEmpty() ? new String[0] : text.split("&")) {
      String[] parts = one.split("=", 2);
      found.put(
          URLDecoder.decode(parts[0], StandardCharsets.UTF_8),
          parts.length > 1 ? URLDecoder.decode(parts[1], StandardCharsets.UTF_8) : "");
    }
    return found;
  }

  /** Files of this machine, named as pyiceberg names them: a path, or file:// and a path as it is. */
  private static final class LocalFiles implements FileIO {
    @Override
    public InputFile newInputFile(String location) {
      return Files.localInput(file(location));
    }

    @Override
    public OutputFile newOutputFile(String location) {
      File file = file(location);
      file.getParentFile().mkdirs();
      return Files.localOutput(file);
    }

    @Override
    public void deleteFile(String location) {
      file(location).delete();
    }

    private static File file(String location) {
      return new File(location.startsWith("file:") ? location.replaceFirst("^file:(//)?", "") : location);
    }
  }
}
