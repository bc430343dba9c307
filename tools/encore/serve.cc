// SPDX-License-Identifier: Apache-2.0
//
// `encore serve`: the options of the server of tools/serve/.

#include "tools/serve/serve.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kServeFooter =
    R"(Interfaces: OpenAI's /v1/embeddings and /v1/models; text-embeddings-inference's /embed,
/embed_sparse, /embed_all, /rerank, /predict, /tokenize and /info; Cohere's /v1/embed, /v2/embed,
/v1/rerank and /v2/rerank, and Jina's /v1/rerank.
/health, /ready and /metrics watch it; /openapi.json describes them all.

A vector has the bits of `encore embed`, whatever else is computed at the time. SIGTERM and Ctrl-C
end the server: it accepts no more, and answers what came. Exit status 0: all was answered; 3: the
grace period, or a second signal, ended some of it.

Examples:
  encore serve --model all-MiniLM-L6-v2
  encore serve --model minilm=all-MiniLM-L6-v2 --model rerank=ms-marco-MiniLM-L6-v2 --port 8081
  curl http://127.0.0.1:8080/v1/embeddings -H 'Content-Type: application/json' \
      -d '{"model": "all-MiniLM-L6-v2", "input": "The cat sat on the mat"}')";

struct ServeOptions {
  std::vector<std::string> models;
  size_t port = 8080;
  std::string precision;
  std::string on_long = "cut";
  std::string log = "all";
  serve::Settings settings = {};
};

int RunServe(const ServeOptions& options) {
  serve::Settings settings = options.settings;
  for (const std::string& model : options.models) {
    const size_t equals = model.find('=');
    if (equals == std::string::npos) {
      settings.models.push_back({FolderName(model), model});
    } else {
      settings.models.push_back({Printable(model.substr(0, equals)), model.substr(equals + 1)});
    }
    if (settings.models.back().name.empty()) {
      throw Failure("--model: found '" + Printable(model) + "', wanted NAME=FOLDER or FOLDER");
    }
  }
  settings.port = static_cast<uint16_t>(options.port);
  if (!options.precision.empty()) settings.precision = Take(PrecisionFromName(options.precision));
  settings.on_long = options.on_long == "error" ? OnLong::kError : OnLong::kCut;
  settings.log = options.log == "all"      ? serve::LogLines::kAll
                 : options.log == "errors" ? serve::LogLines::kErrors
                                           : serve::LogLines::kNone;
  const bool all = Take(serve::Serve(settings, [](const std::string& line) {
    std::cout << "encore serve: " << line << '\n' << std::flush;
  }));
  return all ? kExitOk : kExitIncomplete;
}

}  // namespace

void AddServe(CommandLine& line, Action& action) {
  const std::pair<Command, ServeOptions*> added = AddCommand(
      line, action, "serve", "Serve embeddings and scores over HTTP", kServeFooter, RunServe);
  const Command& command = added.first;
  ServeOptions* const options = added.second;
  serve::Settings& settings = options->settings;
  serve::Limits& limits = settings.limits;
  constexpr int64_t kMost = int64_t{1} << 40;
  command.Add("--model", &options->models,
              "A model's folder, and the name that requests have for it; may be given again",
              {.type = "[NAME=]FOLDER", .required = true});
  command.Add("--host", &settings.host, "The address to listen on; 0.0.0.0: of all networks",
              {.type = "ADDRESS", .show_default = true});
  command.Add("--port", &options->port, "The port to listen on; 0: one that is free",
              {.show_default = true, .range = Range{0, 65535}});
  command.Add("--threads", &settings.threads, "Threads; 0: all usable cores (`encore info`)",
              {.show_default = true, .range = Range{0, 1024}});
  command.Add("--precision", &options->precision,
              "Multiply in f32, or in bf16, int8 or int4, which are smaller and less exact; "
              "default: what the weights were converted to (`encore convert`), or f32",
              {.one_of = {"f32", "bf16", "int8", "int4"}});
  command.Add("--cache", &settings.cache,
              "Keep packed weights in this folder, so that the next start takes less",
              {.type = "FOLDER"});
  command.Add("--on-long", &options->on_long,
              "Truncate (cut) or reject (error) long texts, where a request does not say",
              {.show_default = true, .one_of = {"cut", "error"}});
  command.Add("--api-key-file", &settings.api_key_file,
              "Answer only requests with a key of this file, one a line (Authorization: Bearer)",
              {.type = "FILE"});
  command.Add("--log", &options->log, "Requests that have a line on stderr",
              {.show_default = true, .one_of = {"all", "errors", "none"}});
  const auto add = [&](const char* name, size_t* value, const char* help) {
    command.Add(name, value, help, {.show_default = true, .range = Range{1, kMost}});
  };
  add("--max-body", &limits.body_bytes, "Bytes of a request");
  add("--max-texts", &limits.texts, "Texts of a request");
  add("--max-text-bytes", &limits.text_bytes, "Bytes of a text");
  add("--max-connections", &limits.connections, "Open connections");
  add("--max-queue", &limits.queue_tokens, "Tokens that wait or are computed; beyond: status 429");
  add("--request-seconds", &limits.request_seconds, "Time to send a request or take an answer");
  add("--idle-seconds", &limits.idle_seconds, "Time between two requests of a connection");
  add("--grace-seconds", &limits.grace_seconds, "Time to answer what came before SIGTERM");
}

}  // namespace encore::tool
