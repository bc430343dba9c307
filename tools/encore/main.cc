// SPDX-License-Identifier: Apache-2.0
//
// `encore`: reads the command line, runs one subcommand, turns every failure into one sentence on
// stderr and an exit status (failure.h). The subcommands are in files of their own (commands.h).

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <streambuf>
#include <string>
#include <string_view>

#include "encore/version.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/json_line.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  encore                                        run the demo: one layer, checked and timed
  encore attend "The cat sat on the mat"        self-attention, step by step
  encore run --weights w.safetensors --input x.safetensors --output y.safetensors
  encore convert w.safetensors w8.safetensors --precision int8
                                                convert weights to bf16 or int8
  encore bench                                  measure encoder blocks on this machine
  encore embed --model FOLDER --input FILE --output V.npy
                                                turn texts into embeddings
  encore rerank --model FOLDER --query Q --input FILE
                                                rank texts by how well they fit a query
  encore label --model FOLDER --input FILE      find names and other entities
  encore tokenize --model FOLDER --input FILE   print token ids of texts
  encore info                                   show what encore sees of this machine
  encore verify                                 check the promises about numbers here

`encore COMMAND --help` explains each command.
Exit status: 0 done, 1 a check failed, 2 bad usage or input and nothing was written, 3 ended early
and part of the output was written.)";

// Standard output, whose characters are counted.
class CountedOutput : public std::streambuf {
 public:
  CountedOutput() : to_(std::cout.rdbuf(this)) {}
  ~CountedOutput() override { std::cout.rdbuf(to_); }
  CountedOutput(const CountedOutput&) = delete;
  CountedOutput& operator=(const CountedOutput&) = delete;

  bool any() const { return any_; }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    any_ = true;
    return to_->sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    any_ = any_ || size > 0;
    return to_->sputn(text, size);
  }
  int sync() override { return to_->pubsync(); }

 private:
  std::streambuf* to_;
  bool any_ = false;
};

int Fail(const std::string& name, const std::string& sentence, int exit_status) {
  std::cout.flush();
  std::cerr << name << ": " << sentence << "\n";
  return exit_status;
}

// `exit_status`, unless what was printed cannot be written (a full disk). A reader that has gone
// knows that it has (`| head`).
int Finish(const std::string& name, int exit_status) {
  std::cout.flush();
  if (std::cout) return exit_status;
  if (StdoutIsBrokenPipe()) return kExitIncomplete;
  return Fail(name, "the standard output cannot be written",
              output_written || StdoutPosition() > 0 ? kExitIncomplete : kExitBadInput);
}

// Runs the command that was asked for, and turns what it throws into a sentence.
int RunAction(const std::string& name, const Action& action) {
  const CountedOutput output;
  const auto fail = [&](const std::string& sentence, int exit_status) {
    const bool part = exit_status == kExitBadInput && (output.any() || output_written);
    return Fail(name, sentence, part ? kExitIncomplete : exit_status);
  };
  try {
    return Finish(name, action());
  } catch (const Failure& failure) {
    return fail(failure.what(), failure.exit_status());
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kExitBadInput);
  } catch (const std::exception& error) {
    return fail(std::string("unexpected error: ") + error.what(), kExitBadInput);
  }
}

int Main(int argc, char** argv) {
  CommandLine line(
      "encore", "Turn texts into embeddings, or run transformer encoder layers directly, on CPUs.",
      kFooter, std::string("encore ") + ENCORE_VERSION_STRING);
  Action action = RunDefaultDemo;
  AddDemo(line, action);
  AddAttend(line, action);
  AddRun(line, action);
  AddConvert(line, action);
  AddCalibrate(line, action);
  AddBench(line, action);
  AddInfo(line, action);
  AddVerify(line, action);
  AddTokenize(line, action);
  AddEmbed(line, action);
  AddRerank(line, action);
  AddLabel(line, action);
  AddClassify(line, action);
#if defined(ENCORE_HAVE_SERVER)
  AddServe(line, action);
#endif

  // With --replace-invalid they are replaced where they are used, as those of the input.
  const bool replace =
      std::find(argv, argv + argc, std::string_view("--replace-invalid")) != argv + argc;
  if (!replace) {
    line.CheckTexts([](const std::string& value) {
      const std::string invalid = FoundInvalidUtf8(value);
      return invalid.empty() ? invalid : "found " + invalid + ", wanted text";
    });
  }
  bool done = false;
  const std::string wrong = Printable(line.Read(argc, argv, &done));
  const std::string name = line.name();
  if (done) return Finish(name, kExitOk);
  if (wrong.empty()) return RunAction(name, action);
  return Fail(name, wrong + "; `" + name + " --help` shows the usage", kExitBadInput);
}

}  // namespace
}  // namespace encore::tool

int main(int argc, char** argv) try {
  encore::tool::IgnoreFileSizeSignal();
  const encore::tool::StandardFiles standard_files(&argc, &argv);
  return encore::tool::Main(argc, argv);
} catch (...) {  // no memory for the command line itself, or for the words of an error
  std::fputs("encore: out of memory\n", stderr);
  return encore::tool::kExitBadInput;
}
