// TLS with a certificate made on the spot; the client is the openssl program.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "api/server_fixture.h"

namespace berth {
namespace {

class Tls : public testing::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (std::system("command -v openssl >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl here";
    for (const char* name : {"one", "two"}) {
      const std::string make = fmt::format(
          "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
          "-subj /CN=localhost -keyout {0}/{1}.key -out {0}/{1}.crt >/dev/null 2>&1",
          folder_.string(), name);
      ASSERT_EQ(std::system(make.c_str()), 0);
    }
  }
  [[nodiscard]] api::TlsFiles files(const char* certificate, const char* key) const {
    return {folder_ / certificate, folder_ / key};
  }
  /// What comes back when these bytes are said through TLS.
  [[nodiscard]] std::string say(const std::string& bytes, const std::string& flags = "") const {
    const std::filesystem::path said = folder_ / "said";
    std::FILE* const file = std::fopen(said.c_str(), "w");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
    const std::string command = fmt::format(
        "timeout 30 openssl s_client -quiet -connect 127.0.0.1:{} -CAfile {}/one.crt "
        "-verify_return_error {} <{} 2>&1",
        bound_.port, folder_.string(), flags, said.string());
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4'096> piece{};
    while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
      text.append(piece.data(), count);
    ::pclose(pipe);
    return text;
  }
};

TEST_F(Tls, RequestsAreAnswered) {
  options_.tls = files("one.crt", "one.key");
  start();
  EXPECT_TRUE(bound_.has_tls);
  const std::string close = "Connection: close\r\n";
  const std::string two =
      request("GET", "/api/v1/whoami", "alice") +
      request("POST", "/api/v1/jobs", "alice", R"({"command":["true"]})", close);
  const std::string text = say(two);
  EXPECT_NE(text.find(R"("user":"alice")"), std::string::npos) << text;
  EXPECT_NE(text.find("201 Created"), std::string::npos) << text;
  EXPECT_EQ(say(two, "-tls1_1 -cipher DEFAULT@SECLEVEL=0").find("HTTP/1.1"), std::string::npos);
  // The socket of this machine stays plain, and plain bytes to the port get no answer.
  EXPECT_EQ(local().ask(request("GET", "/healthz", "")).value().status, 200);
  testing::RawClient plain = tcp();
  plain.send(request("GET", "/healthz", ""));
  EXPECT_FALSE(plain.read_answer());
}

TEST_F(Tls, ASilentHandshakeIsGivenUp) {
  options_.tls = files("one.crt", "one.key");
  options_.limits.header_time = std::chrono::milliseconds(200);
  start();
  EXPECT_TRUE(tcp().is_closed_by_peer());
}

TEST_F(Tls, FilesThatDoNotFitAreRefused) {
  const auto error_of = [&](const api::TlsFiles& tls) {
    options_.tls = tls;
    const auto bound = api::Server(service_, options_).start();
    return bound ? std::string("it started") : bound.error().text();
  };
  EXPECT_NE(error_of(files("none.crt", "one.key")).find("none.crt: cannot be used"),
            std::string::npos);
  EXPECT_NE(error_of(files("one.crt", "two.key")).find("two.key"), std::string::npos);
  EXPECT_NE(error_of(files("one.crt", "one.crt")).find("private key"), std::string::npos);
}

}  // namespace
}  // namespace berth
