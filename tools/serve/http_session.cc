// SPDX-License-Identifier: Apache-2.0
//
// A connection: waits for a request, reads its head and body within a time, hands it to the
// service, writes the answer, and waits for the next. While the service computes it goes on reading
// one piece, so as to notice when the client goes away.

#include "tools/serve/http_session.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boost/asio/buffer.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http.hpp"
#include "tools/serve/access_log.h"

// Functions with an error_code to fill return it too: NOLINTBEGIN(bugprone-unused-return-value)
namespace encore::serve {
namespace {

namespace http = boost::beast::http;

constexpr std::chrono::seconds kLinger(5);  // for a client that still sends what was refused
constexpr std::chrono::seconds kFirst(5);   // for a first request while the server ends
constexpr size_t kPiece = 4096;             // bytes of a read
constexpr const char* kDeadlineHeader = "X-Encore-Deadline-Ms";

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string_view KnownMethod(std::string_view method) {
  if (method == "GET" || method == "HEAD") return "GET";
  return method == "POST" ? "POST" : "other";
}

}  // namespace

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Shared* shared, Socket socket)
      : shared_(shared), socket_(std::move(socket)), timer_(shared->io) {}

  void Start() {
    IoError error;
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), error);
    shared_->metrics->AddConnections(1);
    WaitForRequest();
  }

  // No more requests but the one that is being read or computed.
  void Drain() {
    if (state_ != State::kIdle) return;
    IoError error;
    if (answered_ && socket_.available(error) == 0) {
      Close();
    } else {
      Arm(kFirst);
    }
  }

  void Close() {
    if (state_ == State::kClosed) return;
    if (state_ == State::kComputing) shared_->service->Cancel(call_);
    state_ = State::kClosed;
    IoError error;
    socket_.close(error);
    timer_.cancel();
    ReleaseBody();
    shared_->metrics->AddConnections(-1);
    shared_->sessions.erase(shared_from_this());
    StopIfDone(shared_);
  }

  static void StopIfDone(Shared* shared) {
    if (shared->may_stop && shared->sessions.empty() && shared->calls == 0) shared->io.stop();
  }

 private:
  enum class State { kIdle, kReading, kComputing, kWriting, kLingering, kClosed };

  void Arm(std::chrono::seconds time) {
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](const IoError& error) {
      if (!error && self->timer_.expiry() <= Clock::now()) self->Close();
    });
  }

  void ReleaseBody() {
    shared_->body_bytes -= body_bytes_;
    body_bytes_ = 0;
  }

  // ---- Reading ---------------------------------------------------------------------------------

  void WaitForRequest() {
    state_ = State::kIdle;
    Arm(std::chrono::seconds(shared_->settings.limits.idle_seconds));
    if (buffer_.size() > 0) {
      ReadHead();
    } else if (!reading_) {
      ReadPiece();
    }
  }

  void ReadPiece() {
    reading_ = true;
    socket_.async_read_some(buffer_.prepare(kPiece),
                            [self = shared_from_this()](const IoError& error, size_t bytes) {
                              self->reading_ = false;
                              if (self->state_ == State::kClosed) return;
                              if (error) {
                                self->Close();
                                return;
                              }
                              self->buffer_.commit(bytes);
                              if (self->state_ == State::kIdle) self->ReadHead();
                              if (self->state_ == State::kLingering) self->Discard();
                            });
  }

  void ReadHead() {
    state_ = State::kReading;
    Arm(std::chrono::seconds(shared_->settings.limits.request_seconds));
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->settings.limits.header_bytes));
    parser_->body_limit(shared_->settings.limits.body_bytes);
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](const IoError& error, size_t /*bytes*/) {
                              self->OnHead(error);
                            });
  }

  void OnHead(const IoError& error) {
    if (state_ == State::kClosed) return;
    call_ = std::make_shared<Call>();
    call_->received = Clock::now();
    call_->record.route = "none";
    call_->record.method = KnownMethod(View(parser_->get().method_string()));
    keep_alive_ = false;
    is_head_ = false;
    if (error) {
      OnBadRequest(error);
      return;
    }
    const auto& head = parser_->get();
    std::string_view target = View(head.target());
    call_->path = target.substr(0, target.find('?'));
    Response refused;
    is_head_ = head.method() == http::verb::head;
    const std::string_view method = is_head_ ? "GET" : View(head.method_string());
    call_->route = Service::Find(method, call_->path, &refused);
    if (call_->route == nullptr) {
      keep_alive_ = head.keep_alive() && parser_->is_done();
      Write(std::move(refused));
      return;
    }
    call_->record.route = call_->route->path;
    if (!CheckHead(head)) return;
    if (View(head[http::field::expect]) == "100-continue" && !parser_->is_done()) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      boost::asio::async_write(socket_, boost::asio::buffer(kContinue),
                               [self = shared_from_this()](const IoError& failed, size_t) {
                                 if (self->state_ == State::kClosed) return;
                                 failed ? self->Close() : self->ReadBody();
                               });
      return;
    }
    ReadBody();
  }

  // What is refused before its body is read.
  template <typename Head>
  bool CheckHead(const Head& head) {
    const auto refuse = [&](int status, const std::string& sentence) {
      Write(ErrorResponse(call_->route->interface, ApiError(status, sentence)));
      return false;
    };
    if (!call_->route->open && !shared_->keys.Allow(View(head[http::field::authorization]))) {
      return refuse(401, "wanted the header Authorization: Bearer and a key of --api-key-file");
    }
    if (head.find(http::field::origin) != head.end()) {
      return refuse(403, "found the header Origin: requests of web pages are refused");
    }
    if (const auto found = head.find(kDeadlineHeader); found != head.end()) {
      const std::string_view text = View(found->value());
      uint32_t ms = 0;
      const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), ms);
      if (wrong != std::errc() || end != text.data() + text.size()) {
        return refuse(400, std::string(kDeadlineHeader) + ": wanted a number of milliseconds");
      }
      call_->deadline = call_->received + std::chrono::milliseconds(ms);
    }
    const auto length = parser_->content_length();
    const Limits& limits = shared_->settings.limits;
    const size_t bytes = length               ? static_cast<size_t>(*length)
                         : parser_->chunked() ? limits.body_bytes
                                              : 0;
    if (shared_->body_bytes + bytes > limits.all_bodies_bytes) {
      return refuse(503, "the server holds as many bytes of requests as it may");
    }
    body_bytes_ = bytes;
    shared_->body_bytes += bytes;
    return true;
  }

  void ReadBody() {
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](const IoError& error, size_t /*bytes*/) {
                       self->OnBody(error);
                     });
  }

  void OnBody(const IoError& error) {
    if (state_ == State::kClosed) return;
    if (error) {
      OnBadRequest(error);
      return;
    }
    keep_alive_ = parser_->get().keep_alive();
    call_->body = std::move(parser_->get().body());
    call_->record.bytes_in = call_->body.size();
    timer_.cancel();
    state_ = State::kComputing;
    ++shared_->calls;
    awaiting_ = true;
    call_->reply = [self = shared_from_this()](Response response) {
      boost::asio::post(self->shared_->io, [self, made = std::move(response)]() mutable {
        self->OnReply(std::move(made));
      });
    };
    if (buffer_.size() == 0 && !reading_) ReadPiece();
    shared_->service->Handle(CallPtr(call_));
  }

  // A request that cannot be read, or a client that has gone.
  void OnBadRequest(const IoError& error) {
    using Parsing = http::error;
    const auto is = [&](Parsing value) { return error == http::make_error_code(value); };
    const bool parsing = error.category() == http::make_error_code(Parsing::bad_method).category();
    if (!parsing || is(Parsing::end_of_stream) || is(Parsing::partial_message)) {
      Close();
      return;
    }
    ApiError wrong(400, "the request is no HTTP: " + error.message());
    const Limits& limits = shared_->settings.limits;
    if (is(Parsing::body_limit)) {
      wrong =
          ApiError(413, "the body has more than " + std::to_string(limits.body_bytes) + " bytes");
    }
    if (is(Parsing::header_limit)) {
      wrong = ApiError(
          431, "the headers have more than " + std::to_string(limits.header_bytes) + " bytes");
    }
    const Route* const route = call_->route;
    Write(ErrorResponse(route == nullptr ? Interface::kOpenAi : route->interface, wrong));
  }

  // ---- Writing ---------------------------------------------------------------------------------

  void OnReply(Response response) {
    if (!awaiting_) return;
    awaiting_ = false;
    --shared_->calls;
    if (state_ == State::kComputing) {
      Write(std::move(response));
    } else {
      call_ = nullptr;
      StopIfDone(shared_);
    }
  }

  void Write(Response response) {
    state_ = State::kWriting;
    RequestRecord& record = call_->record;
    record.code = response.status;
    record.bytes_out = response.body.size();
    keep_alive_ = keep_alive_ && !shared_->draining;
    answer_.emplace(static_cast<http::status>(response.status), 11);
    answer_->set(http::field::content_type, response.type);
    answer_->set(http::field::server, "encore");
    if (response.retry_after > 0) {
      answer_->set(http::field::retry_after, std::to_string(response.retry_after));
    }
    if (*response.allow != '\0') answer_->set(http::field::allow, response.allow);
    if (response.status == 401) answer_->set(http::field::www_authenticate, "Bearer");
    answer_->body() = std::move(response.body);
    answer_->keep_alive(keep_alive_);
    answer_->prepare_payload();
    if (is_head_) answer_->body().clear();  // the length is what GET's would be
    Arm(std::chrono::seconds(shared_->settings.limits.request_seconds));
    http::async_write(socket_, *answer_,
                      [self = shared_from_this()](const IoError& error, size_t /*bytes*/) {
                        self->OnWritten(error);
                      });
  }

  void OnWritten(const IoError& error) {
    call_->record.seconds = std::chrono::duration<double>(Clock::now() - call_->received).count();
    shared_->metrics->Count(call_->record);
    LogRequest(shared_->settings.log, call_->record);
    call_ = nullptr;
    answer_.reset();
    parser_.reset();
    ReleaseBody();
    if (state_ == State::kClosed) return;
    answered_ = true;
    if (error) {
      Close();
    } else if (keep_alive_) {
      WaitForRequest();
      if (shared_->draining) Drain();
    } else {
      Linger();
    }
  }

  // Closing at once would make the system reset the connection where the client still sends, and
  // the client might lose the answer.
  void Linger() {
    state_ = State::kLingering;
    IoError error;
    socket_.shutdown(Socket::shutdown_send, error);
    Arm(kLinger);
    if (!reading_) Discard();
  }

  void Discard() {
    rest_.resize(size_t{64} << 10);
    socket_.async_read_some(boost::asio::buffer(rest_),
                            [self = shared_from_this()](const IoError& error, size_t /*bytes*/) {
                              if (self->state_ == State::kClosed) return;
                              error ? self->Close() : self->Discard();
                            });
  }

  Shared* shared_;
  Socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::vector<char> rest_;
  CallPtr call_;
  State state_ = State::kIdle;
  size_t body_bytes_ = 0;  // its part of Shared::body_bytes
  bool reading_ = false;   // ReadPiece's read
  bool awaiting_ = false;  // an answer of the service
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool answered_ = false;  // a request, at least
};

void StartSession(Shared* shared, Socket socket) {
  const auto session = std::make_shared<Session>(shared, std::move(socket));
  shared->sessions.insert(session);
  session->Start();
}

void DrainSessions(Shared* shared) {
  shared->may_stop = true;
  const auto sessions = shared->sessions;
  for (const std::shared_ptr<Session>& session : sessions) session->Drain();
  Session::StopIfDone(shared);
}

void CloseSessions(Shared* shared) {
  shared->may_stop = true;
  const auto sessions = shared->sessions;
  for (const std::shared_ptr<Session>& session : sessions) session->Close();
  Session::StopIfDone(shared);
}

}  // namespace encore::serve
// NOLINTEND(bugprone-unused-return-value)
