
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0];
  if (!body || body.rows.length < 2) return;
  table.querySelectorAll("thead th").forEach(function (head) {
    var column = head.cellIndex;
    var button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    while (head.firstChild) button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener("click", function () {
      var falling = head.getAttribute("aria-sort") !== "descending";
      var sign = falling ? -1 : 1;
      table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      Array.from(body.rows).sort(function (a, b) {
        var x = a.cells[column].dataset.value, y = b.cells[column].dataset.value;
        if (x === undefined) return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
        x = parseFloat(x); y = parseFloat(y);
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return sign * (x - y);
      }).forEach(function (row) { body.appendChild(row); });
    });
  });
});
