// SPDX-License-Identifier: Apache-2.0
//
// A cheap client of HTTP servers, for load.py: one thread, keep-alive connections, requests as they
// are in a file. Prints one line of JSON.
//
//   load_client PORT REQUESTS CONNECTIONS SECONDS [RATE]
//
// REQUESTS has a line for each: a path, a tab and a body; they are sent in turn. Without RATE a
// connection sends the next when it has its answer (a closed loop). With it requests arrive at
// drawn times, RATE a second, whatever the server does; one that finds all connections busy waits,
// and that time counts. What begins in the first second is left out.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
  int file = -1;
  bool busy = false;
  Clock::time_point arrived = {};
  std::string answer = {};
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int Connect(int port) {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int one = 1;
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (::connect(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) Die("connect");
  return file;
}

std::vector<std::string> ReadRequests(const char* path) {
  std::vector<std::string> requests;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    const std::string body = line.substr(tab + 1);
    requests.push_back("POST " + line.substr(0, tab) +
                       " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       "Content-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  if (requests.empty()) Die("no requests");
  return requests;
}

void Send(int file, const std::string& data) {
  for (size_t sent = 0; sent < data.size();) {
    const ssize_t bytes = ::send(file, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (bytes <= 0) Die("send");
    sent += static_cast<size_t>(bytes);
  }
}

// Whether all of the answer is here.
bool IsWhole(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const char* length = ::strcasestr(answer.c_str(), "\r\ncontent-length:");
  if (length == nullptr || length > answer.c_str() + end) Die("an answer without a length");
  return answer.size() >= end + 4 + std::strtoul(length + 17, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int port = std::atoi(argv[1]);
  const std::vector<std::string> requests = ReadRequests(argv[2]);
  std::vector<Connection> connections(static_cast<size_t>(std::atoi(argv[3])));
  const double seconds = std::atof(argv[4]);
  const double rate = argc > 5 ? std::atof(argv[5]) : 0;
  std::vector<pollfd> polled;
  for (Connection& connection : connections) {
    connection.file = Connect(port);
    polled.push_back({connection.file, POLLIN, 0});
  }

  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(rate > 0 ? rate : 1);
  const auto after = [](double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const Clock::time_point start = Clock::now();
  const Clock::time_point counted = start + std::chrono::seconds(1);
  const Clock::time_point end = counted + after(seconds);
  Clock::time_point next = start;
  std::deque<Clock::time_point> waiting;
  std::vector<double> times;
  size_t sent = 0;
  size_t wrong = 0;
  size_t busy = 0;
  for (;;) {
    const Clock::time_point now = Clock::now();
    for (; rate > 0 && next <= now && next < end; next += after(gap(random))) {
      waiting.push_back(next);
    }
    if (now >= end && busy == 0 && waiting.empty()) break;
    for (Connection& connection : connections) {
      if (connection.busy || (rate > 0 ? waiting.empty() : now >= end)) continue;
      connection.arrived = rate > 0 ? waiting.front() : Clock::now();
      if (rate > 0) waiting.pop_front();
      connection.busy = true;
      ++busy;
      Send(connection.file, requests[sent++ % requests.size()]);
    }
    timespec pause = {1, 0};
    if (rate > 0 && Clock::now() < end) {
      const auto left =
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(next, end) - Clock::now());
      pause = {0, std::clamp<long>(static_cast<long>(left.count()), 0, 999999999)};
    }
    if (::ppoll(polled.data(), polled.size(), &pause, nullptr) < 0) Die("ppoll");
    for (size_t i = 0; i < connections.size(); ++i) {
      if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      Connection& connection = connections[i];
      char bytes[65536];
      const ssize_t count = ::recv(connection.file, bytes, sizeof(bytes), 0);
      if (count <= 0) {
        if (connection.busy) Die("the server closed a connection");
        // Servers close what was idle for some seconds; clients connect again.
        ::close(connection.file);
        polled[i].fd = connection.file = Connect(port);
        continue;
      }
      connection.answer.append(bytes, static_cast<size_t>(count));
      if (!IsWhole(connection.answer)) continue;
      if (connection.answer.compare(0, 12, "HTTP/1.1 200") != 0) ++wrong;
      connection.answer.clear();
      connection.busy = false;
      --busy;
      if (connection.arrived < counted) continue;
      times.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - connection.arrived).count());
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - counted).count();
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    if (times.empty()) return 0.0;
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(q * static_cast<double>(times.size())))];
  };
  std::printf(
      "{\"requests\":%zu,\"wrong\":%zu,\"per_second\":%.1f,\"p50\":%.3f,\"p99\":%.3f,"
      "\"p999\":%.3f}\n",
      times.size(), wrong, static_cast<double>(times.size()) / took, quantile(0.5), quantile(0.99),
      quantile(0.999));
  for (const Connection& connection : connections) ::close(connection.file);
  return 0;
}
