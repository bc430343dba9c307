// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a client sends to `encore serve`: every answer is HTTP, of JSON in UTF-8, and
// an error where its status says so; no connection, request or byte of one is left.
//
// An input that begins with "/" is a path, a line break and the body of a POST. One that begins
// with
// "!" vanishes with the rest sent. Others are sent as they are, and a request for /health follows.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "boost/asio/executor_work_guard.hpp"
#include "nlohmann/json.hpp"
#include "tests/fuzz/target.h"
#include "tools/serve/http_session.h"

namespace encore::fuzz {
namespace {

serve::Settings SmallSettings() {
  const std::string data = ENCORE_TEST_DATA_DIR;
  serve::Settings settings;
  settings.models = {{"base", data + "/text/base"},
                     {"rerank", data + "/text/reranker"},
                     {"classify", data + "/text/classifier"},
                     {"sparse", data + "/heads/splade_bert"}};
  settings.log = serve::LogLines::kNone;
  settings.limits.body_bytes = 2000;
  settings.limits.texts = 8;
  settings.limits.text_bytes = 500;
  settings.limits.header_bytes = 1000;
  settings.limits.queue_tokens = 200;
  return settings;
}

// One connection at a time, served on this thread.
class ServedConnection {
 public:
  ServedConnection()
      : keys_(*serve::ApiKeys::Read("")),
        service_(settings_, Models(settings_), Executor::Inline(), &metrics_),
        shared_{.settings = settings_, .keys = keys_, .metrics = &metrics_, .service = &service_},
        work_(boost::asio::make_work_guard(shared_.io)) {}

  // What is answered until the server waits for more.
  std::string Exchange(std::string_view sent, bool vanish) {
    int ends[2] = {};
    ENCORE_FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client_ = ends[0];
    serve::Socket socket(shared_.io);
    socket.assign(boost::asio::ip::tcp::v4(), ends[1]);
    serve::StartSession(&shared_, std::move(socket));
    while (!sent.empty()) {
      const ssize_t bytes = ::send(client_, sent.data(), sent.size(), MSG_NOSIGNAL);
      if (bytes > 0) {
        sent.remove_prefix(static_cast<size_t>(bytes));
      } else if (!Step()) {
        break;  // the server reads no more
      }
    }
    std::string answer;
    while (!vanish && Step(&answer)) {
    }
    ::shutdown(client_, SHUT_WR);
    while (Step(&answer) || shared_.calls > 0) {
    }
    ::close(client_);
    while (Step()) {
    }
    ENCORE_FUZZ_CHECK(shared_.sessions.empty() && shared_.calls == 0 && shared_.body_bytes == 0);
    return answer;
  }

 private:
  static std::vector<serve::Model> Models(const serve::Settings& settings) {
    auto models = serve::OpenModels(settings, Executor::Inline());
    ENCORE_FUZZ_CHECK(models.ok(), models.status().message());
    return *std::move(models);
  }

  // Whether anything happened, or will without the client.
  bool Step(std::string* answer = nullptr) {
    bool more = shared_.io.poll() > 0;
    char bytes[65536];
    for (ssize_t n = 0; answer != nullptr && (n = ::recv(client_, bytes, sizeof(bytes), 0)) > 0;) {
      answer->append(bytes, static_cast<size_t>(n));
      more = true;
    }
    if (!more && shared_.calls > 0) more = shared_.io.run_one() > 0;
    return more;
  }

  const serve::Settings settings_ = SmallSettings();
  const serve::ApiKeys keys_;
  serve::Metrics metrics_;
  serve::Service service_;
  serve::Shared shared_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  int client_ = -1;
};

std::string_view Header(std::string_view head, std::string_view name) {
  const size_t at = head.find("\r\n" + std::string(name) + ": ");
  if (at == std::string_view::npos) return {};
  head.remove_prefix(at + name.size() + 4);
  return head.substr(0, head.find("\r\n"));
}

// Returns how many there were. Answers to HEAD have the length of GET's body and none.
size_t CheckAnswers(std::string_view answers, bool some_have_no_body) {
  size_t count = 0;
  while (!answers.empty()) {
    const std::string whole(answers);
    ENCORE_FUZZ_CHECK(answers.starts_with("HTTP/1.1 "), whole);
    const int status = std::atoi(answers.data() + sizeof("HTTP/1.1"));
    const size_t end = answers.find("\r\n\r\n");
    ENCORE_FUZZ_CHECK(end != std::string_view::npos, whole);
    const std::string_view head = answers.substr(0, end + 2);
    answers.remove_prefix(end + 4);
    if (status == 100) continue;
    const std::string_view length = Header(head, "Content-Length");
    ENCORE_FUZZ_CHECK(!length.empty(), whole);
    size_t bytes = std::strtoul(std::string(length).c_str(), nullptr, 10);
    const bool has_none =
        some_have_no_body && (answers.empty() || answers.starts_with("HTTP/1.1 "));
    if (has_none) bytes = 0;
    ENCORE_FUZZ_CHECK(bytes <= answers.size(), whole);
    const std::string_view body = answers.substr(0, bytes);
    answers.remove_prefix(bytes);
    ++count;
    ENCORE_FUZZ_CHECK(status == 200 || (status >= 400 && status != 500), whole);
    if (has_none || Header(head, "Content-Type") != "application/json") continue;
    const auto value = nlohmann::json::parse(body, nullptr, false);
    ENCORE_FUZZ_CHECK(!value.is_discarded(), whole);
    ENCORE_FUZZ_CHECK(status == 200 || value.contains("error"), whole);
  }
  return count;
}

}  // namespace

void RunServe(std::string_view input) {
  static auto* const server = new ServedConnection;  // to the end of the process
  if (input.starts_with('!')) {
    (void)server->Exchange(input.substr(1), true);
    return;
  }
  std::string sent;
  const bool post = input.starts_with('/');
  if (post) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view body = input.substr(std::min(end + 1, input.size()));
    sent = "POST " + std::string(input.substr(0, end)) +
           " HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
  } else {
    sent = std::string(input) + "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";
  }
  const bool some_have_no_body = sent.find("HEAD ") != std::string::npos;
  const size_t count = CheckAnswers(server->Exchange(sent, false), some_have_no_body);
  const bool plain =
      post && input.substr(0, input.find('\n')).find_first_of(" \r") == std::string_view::npos;
  if (plain) ENCORE_FUZZ_CHECK(count == 1);
}

}  // namespace encore::fuzz
