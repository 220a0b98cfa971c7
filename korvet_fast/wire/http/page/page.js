// Keeps a page up to date: #live is replaced every few seconds, and records that come are put on top of the others.
"use strict";

const load = async place => {
    const answer = await fetch(place, {credentials: "same-origin"});
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
};

// Calls `work` every so many seconds while the page is seen; one call at a time.
const repeat = (seconds, work) => {
    const next = async () => {
        if (!document.hidden) await work();
        setTimeout(next, seconds * 1000);
    };
    setTimeout(next, seconds * 1000);
};

const isUsed = part => part.contains(document.activeElement) || !getSelection().isCollapsed;

if (document.getElementById("live")) {
    repeat(Number(document.getElementById("live").dataset.every), async () => {
        const live = document.getElementById("live");
        if (isUsed(live)) return;
        try {
            const fresh = (await load(location.href)).getElementById("live");
            if (!isUsed(live)) live.replaceWith(fresh);
            fresh.classList.remove("stale");
        } catch {
            live.classList.add("stale");
        }
    });
}

const follow = document.getElementById("follow");
if (follow) {
    const pause = document.getElementById("pause");
    const said = document.getElementById("followed");
    let seen = 0, leftOut = 0, some = false, paused = false;
    pause.addEventListener("click", () => {
        paused = !paused;
        pause.setAttribute("aria-pressed", String(paused));
        pause.textContent = paused ? "Go on" : "Pause";
    });
    repeat(Number(follow.dataset.every), async () => {
        if (paused) return;
        const answer = document.getElementById("answer");
        try {
            const fresh = (await load(answer.dataset.next)).getElementById("answer");
            if (paused) return;
            const records = document.getElementById("records");
            const came = [...fresh.querySelectorAll("#records > li")];
            records.prepend(...came.reverse());
            while (records.childElementCount > Number(follow.dataset.most)) records.lastElementChild.remove();
            seen += came.length;
            leftOut += Number(fresh.dataset.leftOut);
            some = some || fresh.dataset.counted === "0" && fresh.dataset.leftOut !== "0";
            const missing = some ? "; some that came between are not shown"
                : leftOut ? `; ${leftOut.toLocaleString("en")} that came between are not shown` : "";
            said.textContent = seen ? `${seen.toLocaleString("en")} records seen, the last on top${missing}.`
                : "Waiting for records…";
            answer.dataset.next = fresh.dataset.next;
        } catch (error) {
            said.textContent = `The broker does not answer (${error.message}).`;
        }
    });
}
