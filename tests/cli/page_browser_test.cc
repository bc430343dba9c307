// SPDX-License-Identifier: Apache-2.0
//
// Pages in a real browser, headless Chromium, where there is one: they are shown in light and dark
// without an error, load nothing, and no label lies on another. Skipped aloud without a browser.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/cli_runner.h"
#include "tests/cli/synthetic_report.h"
#include "tests/support/sanitizers.h"
#include "tools/encore/comparison.h"
#include "tools/encore/report_pages.h"

namespace encore {
namespace {

// Writes down what overlaps or leaves its picture, in place of the page.
constexpr const char* kLook = R"(<script>
const faults = [];
let seen = 0;
for (const svg of document.querySelectorAll('figure svg')) {
  const all = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter(
      t => !(t.getAttribute('transform') || '').includes('rotate'));
  const boxes = texts.map(t => t.getBoundingClientRect());
  seen += texts.length;
  boxes.forEach((a, i) => {
    if (a.left < all.left - 1 || a.right > all.right + 1 || a.top < all.top - 1 ||
        a.bottom > all.bottom + 1) {
      faults.push('outside: ' + texts[i].textContent);
    }
    boxes.slice(i + 1).forEach((b, j) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) {
        faults.push('overlap: ' + texts[i].textContent + ' and ' + texts[i + 1 + j].textContent);
      }
    });
  });
}
document.body.textContent = 'looked at ' + seen + ' texts, ' + faults.length + ' faults; ' +
    faults.slice(0, 20).join('; ');
</script></body>)";

class PageBrowserTest : public CliTest {
 protected:
  void SetUp() override {
    // Not all that has the name shows a file: a stub may only say how to install it, and a confined
    // one reads no temporary files.
    WriteFile(Path("probe.html"), "<p>shown</p>");
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::string found = std::string("command -v ") + name + " > /dev/null 2>&1";
      if (std::system(found.c_str()) != 0) continue;
      browser_ = name;
      if (Show(Path("probe.html"), {"--dump-dom"}).out.find("shown") != std::string::npos) return;
    }
    GTEST_SKIP() << "NO BROWSER: there is no chromium that shows a file";
  }

  CliResult Show(const std::string& file, std::vector<std::string> flags) const {
    for (const char* flag :
         {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
          "--enable-logging=stderr", "--window-size=1300,2000"}) {
      flags.push_back(flag);
    }
    flags.push_back("--user-data-dir=" + Path("profile"));
    flags.push_back("--host-resolver-rules=MAP * ~NOTFOUND");
    flags.push_back("file://" + file);
    flags.insert(flags.begin(), {"120", browser_});
    return Run("timeout", flags);
  }

  // As the browser shows it, with its console.
  void ExpectShown(const std::string& page) const {
    WriteFile(Path("page.html"), page);
    std::string pictures[2];
    for (const int scheme : {0, 1}) {  // dark, light
      const std::string picture = Path("page" + std::to_string(scheme) + ".png");
      const CliResult shown = Show(
          Path("page.html"), {"--screenshot=" + picture,
                              "--blink-settings=preferredColorScheme=" + std::to_string(scheme)});
      EXPECT_EQ(shown.status, 0) << shown.err;
      EXPECT_EQ(shown.err.find("CONSOLE"), std::string::npos) << shown.err;
      pictures[scheme] = ReadFile(picture);
      EXPECT_GT(pictures[scheme].size(), 20000u);
    }
    EXPECT_NE(pictures[0], pictures[1]);
  }

  // "looked at N texts, 0 faults; ".
  std::string Look(std::string page) const {
    const size_t policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
    page.erase(policy, page.find('>', policy) + 1 - policy);  // it would stop the script
    page.replace(page.find("</body>"), 7, kLook);
    WriteFile(Path("look.html"), page);
    const CliResult looked = Show(Path("look.html"), {"--dump-dom"});
    const size_t at = looked.out.find("looked at ");
    return at == std::string::npos ? looked.out + looked.err : looked.out.substr(at, 2000);
  }

  void ExpectClear(const std::string& page) const {
    ExpectShown(page);
    const std::string look = Look(page);
    EXPECT_NE(look.find(" texts, 0 faults"), std::string::npos) << look;
    EXPECT_EQ(look.find("looked at 0 texts"), std::string::npos) << look;
  }

 private:
  std::string browser_;
};

tool::Report ManyThreads() {
  tool::Report report = SyntheticReport(
      {.seed = 4, .row_drift = 0.02, .row_noise = 0.04, .threads = {1, 2, 3, 4, 8, 16, 32, 64}});
  for (size_t i = 0; i < 40; ++i) report.rows.push_back(report.rows[i]);
  for (size_t i = report.rows.size() - 40; i < report.rows.size(); ++i) {
    report.rows[i].engine = "onnxruntime";
    report.rows[i].target = "";
  }
  return report;
}

TEST_F(PageBrowserTest, ReportsAreShownClearly) {
  ExpectClear(tool::ReportPage(SyntheticReport({.seed = 1, .row_drift = 0.01})));
  ExpectClear(tool::ReportPage(ManyThreads()));
}

TEST_F(PageBrowserTest, ComparisonsAreShownClearly) {
  const std::vector<tool::NamedReport> reports = {
      {"before.json", SyntheticReport({.seed = 1})},
      {"after.json", SyntheticReport({.seed = 2, .speed = 1.1})},
      {"a folder with a long name/narrow.json", SyntheticReport({.seed = 3, .targets = {"AVX2"}})}};
  ExpectClear(tool::ComparePage(reports, tool::CompareReports(reports)));
}

TEST_F(PageBrowserTest, FaultsAreSeen) {
  std::string page = tool::ReportPage(SyntheticReport({.seed = 1}));
  const std::string text = "<text class=\"ink\" x=\"300.0\" y=\"60.0\">twice</text>";
  page.insert(page.find("</svg>", page.find("<figure>")), text + text);
  EXPECT_NE(Look(page).find("overlap: twice and twice"), std::string::npos) << Look(page);
}

}  // namespace
}  // namespace encore
