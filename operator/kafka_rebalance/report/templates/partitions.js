// Unpacks the partitions and shows those that match the search; without any library, and without the network.
const MOST = 200;
const text = (id) => document.getElementById(id).textContent;

async function unpacked() {
  const bytes = Uint8Array.from(atob(text("packed")), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const columns = JSON.parse(await new Response(stream).text());
  const rows = [];
  let at = 0, partition = 0;
  columns.topics.forEach((topic, index) => {
    for (let i = 0; i < columns.counts[index]; i++, at++) {
      partition += columns.partition[at];
      const current = columns.current[at];
      const target = columns.target[at].map((broker, place) => (broker === null ? current[place] : broker));
      const size = columns.size[at];
      rows.push({ name: `${topic}-${partition}`, current, target, size, why: columns.why[at] });
    }
  });
  const copied = (row) => row.size * row.target.filter((b) => !row.current.includes(b)).length;
  return rows.sort((a, b) => copied(b) - copied(a) || (a.name < b.name ? -1 : 1));
}

function inBytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; unit++) count /= 1024;
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

function described(row, reasons) {
  const added = row.target.filter((b) => !row.current.includes(b));
  const gone = row.current.filter((b) => !row.target.includes(b));
  const said = [];
  if (added.length) said.push(`copied to ${added.join(", ")}`);
  if (gone.length) said.push(`leaves ${gone.join(", ")}`);
  if (row.current[0] !== row.target[0]) said.push(`preferred leader ${row.current[0]} → ${row.target[0]}`);
  if (!said.length) said.push(row.current.join() === row.target.join() ? "its preferred leader is elected" : "replicas in another order");
  const why = row.why >= 0 ? ` (${reasons[row.why]})` : "";
  return said.join("; ") + why;
}

function matching(rows, query) {
  const broker = /^broker\s+(\d+)$/.exec(query);
  if (broker) {
    const id = Number(broker[1]);
    return rows.filter((row) => row.current.includes(id) !== row.target.includes(id));
  }
  return query ? rows.filter((row) => row.name.toLowerCase().includes(query)) : rows;
}

function show(rows, reasons) {
  const found = matching(rows, document.getElementById("search").value.trim().toLowerCase());
  const body = document.getElementById("rows");
  body.replaceChildren(
    ...found.slice(0, MOST).map((row) => {
      const line = document.createElement("tr");
      const copied = row.size * row.target.filter((b) => !row.current.includes(b)).length;
      const cells = [row.name, row.current.join(", "), row.target.join(", "), copied ? inBytes(copied) : "", described(row, reasons)];
      cells.forEach((value, place) => {
        const cell = document.createElement("td");
        cell.textContent = value;
        if (place === 3) cell.className = "num";
        line.append(cell);
      });
      return line;
    }),
  );
  const shown = Math.min(found.length, MOST);
  document.getElementById("found").textContent = `${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} shown`;
}

unpacked().then((rows) => {
  const reasons = JSON.parse(text("reasons"));
  const search = document.getElementById("search");
  const linked = () => {
    search.value = decodeURIComponent(location.hash.slice(1));
    show(rows, reasons);
  };
  search.addEventListener("input", () => {
    history.replaceState(null, "", `#${encodeURIComponent(search.value)}`); // so that a reload keeps the search
    show(rows, reasons);
  });
  addEventListener("hashchange", linked); // a link to report.html#orders-3 shows that partition
  linked();
}).catch((error) => {
  document.getElementById("found").textContent = `this browser cannot unpack the table: ${error.message}`;
});
