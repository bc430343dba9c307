// SPDX-License-Identifier: Apache-2.0
//
// Accepting connections, and ending. What a connection does is in http_session.cc.

#include "tools/serve/http_server.h"

#include <sys/resource.h>

#include <csignal>
#include <exception>
#include <string>

#include "boost/asio/post.hpp"
#include "boost/asio/signal_set.hpp"
#include "boost/asio/steady_timer.hpp"
#include "tools/serve/http_session.h"

// Functions with an error_code to fill return it too: NOLINTBEGIN(bugprone-unused-return-value)
namespace encore::serve {
namespace {

// So that as many connections are accepted as the settings allow, where the system does.
void RaiseFileLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct HttpServer::Impl {
  Impl(const Settings& settings, const ApiKeys& keys, Metrics* metrics)
      : shared{.settings = settings, .keys = keys, .metrics = metrics},
        acceptor(shared.io),
        signals(shared.io),
        timer(shared.io) {}

  void Accept() {
    acceptor.async_accept([this](const IoError& error, Socket socket) {
      if (acceptor.is_open()) {
        error ? AcceptLater() : Accept();
      }
      if (!error) Begin(std::move(socket));  // also one that was accepted as the server ended
    });
  }

  // After there were no file descriptors, mostly: they come back as connections end.
  void AcceptLater() {
    timer.expires_after(std::chrono::milliseconds(50));
    timer.async_wait([this](const IoError& ended) {
      if (!ended && acceptor.is_open()) Accept();
    });
  }

  void Begin(Socket socket) {
    if (shared.sessions.size() >= shared.settings.limits.connections) return;  // and it closes
    StartSession(&shared, std::move(socket));
  }

  void WaitForSignal() {
    signals.async_wait([this](const IoError& error, int /*signal*/) {
      if (error) return;
      if (shared.draining) {
        EndNow();
      } else {
        Drain();
      }
      WaitForSignal();
    });
  }

  void Drain() {
    shared.draining = true;
    shared.service->set_draining();
    // Whoever connected before the signal is answered.
    IoError error;
    acceptor.non_blocking(true, error);
    for (;;) {
      Socket socket(shared.io);
      acceptor.accept(socket, error);
      if (error) break;
      Begin(std::move(socket));
    }
    acceptor.close(error);
    timer.expires_after(std::chrono::seconds(shared.settings.limits.grace_seconds));
    timer.async_wait([this](const IoError& ended) {
      if (!ended) EndNow();
    });
    // Behind a connection that was accepted and not begun yet.
    boost::asio::post(shared.io, [this] { DrainSessions(&shared); });
  }

  void EndNow() {
    complete = complete && shared.calls == 0;
    CloseSessions(&shared);
  }

  Shared shared;
  boost::asio::ip::tcp::acceptor acceptor;
  boost::asio::signal_set signals;
  boost::asio::steady_timer timer;
  bool complete = true;
};

HttpServer::HttpServer(const Settings& settings, const ApiKeys& keys, Metrics* metrics)
    : impl_(std::make_unique<Impl>(settings, keys, metrics)) {}

HttpServer::~HttpServer() = default;

Status HttpServer::Listen() {
  const Settings& settings = impl_->shared.settings;
  IoError error;
  const auto address = boost::asio::ip::make_address(settings.host, error);
  if (error) {
    return InvalidArgument("--host: found '" + settings.host +
                           "', wanted an address such as 127.0.0.1, 0.0.0.0 or ::1");
  }
  const boost::asio::ip::tcp::endpoint endpoint(address, settings.port);
  const auto failed = [&](const char* what) {
    return Status(ErrorCode::kIo, std::string(what) + " " + settings.host + ", port " +
                                      std::to_string(settings.port) + ": " + error.message());
  };
  RaiseFileLimit();
  auto& acceptor = impl_->acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (error) return failed("cannot open a socket for");
  acceptor.set_option(boost::asio::socket_base::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  if (error) return failed("cannot listen on");
  acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) return failed("cannot listen on");
  return {};
}

uint16_t HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

bool HttpServer::Run(Service* service) {
  impl_->shared.service = service;
  (void)std::signal(SIGPIPE, SIG_IGN);
  impl_->signals.add(SIGTERM);
  impl_->signals.add(SIGINT);
  impl_->WaitForSignal();
  impl_->Accept();
  while (!impl_->shared.io.stopped()) {
    try {
      impl_->shared.io.run();
    } catch (const std::exception&) {
      continue;  // what it was about ends by its timer
    }
  }
  return impl_->complete;
}

}  // namespace encore::serve
// NOLINTEND(bugprone-unused-return-value)
